#include "io/decompress.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"

namespace pscloud {
namespace {

constexpr size_t kReadBytes = 256 << 10;
constexpr size_t kMagicBytes = 4;

// A file whose first bytes have been looked at already.
class PeekedInput final : public Input {
 public:
  PeekedInput(std::unique_ptr<Input> input, std::vector<char> first, size_t size)
      : input_(std::move(input)), bytes_(std::move(first)), end_(size) {}

  Result<size_t> read(std::span<char> out) override {
    if (at_ == end_) return input_->read(out);
    const size_t count = std::min(end_ - at_, out.size());
    std::memcpy(out.data(), bytes_.data() + at_, count);
    at_ += count;
    return count;
  }

  // Without a copy: what is there and not used yet; empty at the end.
  Result<std::span<char>> look() {
    if (at_ == end_) {
      end_ = TRY(input_->read(bytes_));
      at_ = 0;
    }
    return std::span(bytes_).subspan(at_, end_ - at_);
  }
  void use(size_t count) { at_ += count; }

 private:
  std::unique_ptr<Input> input_;
  std::vector<char> bytes_;
  size_t at_ = 0;
  size_t end_;
};

class GzipInput final : public Input {
 public:
  GzipInput(std::unique_ptr<PeekedInput> from, std::string name) : from_(std::move(from)), name_(std::move(name)) {
    // 16: gzip's header, not zlib's.
    begun_ = inflateInit2(&stream_, MAX_WBITS + 16) == Z_OK;
  }
  ~GzipInput() override { inflateEnd(&stream_); }

  Result<size_t> read(std::span<char> out) override {
    if (!begun_) return Error{Code::kFailed, name_ + ": no memory to decompress it"};
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(std::min<size_t>(out.size(), 1u << 30));
    const uInt wanted = stream_.avail_out;
    while (stream_.avail_out == wanted) {
      const std::span<char> input = TRY(from_->look());
      if (input.empty()) {
        if (inside_) return corrupt("{}: the gzip file ends too early: {} bytes came of it", name_, made_);
        return 0;
      }
      if (!std::exchange(inside_, true) && inflateReset(&stream_) != Z_OK) return damaged();
      stream_.next_in = reinterpret_cast<Bytef*>(input.data());
      stream_.avail_in = static_cast<uInt>(input.size());
      const int result = inflate(&stream_, Z_NO_FLUSH);
      from_->use(input.size() - stream_.avail_in);
      if (result == Z_STREAM_END) {
        inside_ = false;
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        return damaged();
      }
    }
    const size_t count = wanted - stream_.avail_out;
    made_ += count;
    return count;
  }

 private:
  Error damaged() const {
    return corrupt("{}: the gzip file is damaged after {} bytes of text ({})", name_, made_,
                   stream_.msg ? stream_.msg : "no gzip data");
  }

  std::unique_ptr<PeekedInput> from_;
  std::string name_;
  z_stream stream_{};
  bool begun_ = false;
  bool inside_ = false;  // a member
  uint64_t made_ = 0;
};

class ZstdInput final : public Input {
 public:
  ZstdInput(std::unique_ptr<PeekedInput> from, std::string name)
      : from_(std::move(from)), name_(std::move(name)), stream_(ZSTD_createDStream()) {}

  Result<size_t> read(std::span<char> out) override {
    if (!stream_) return Error{Code::kFailed, name_ + ": no memory to decompress it"};
    ZSTD_outBuffer made{.dst = out.data(), .size = out.size(), .pos = 0};
    while (made.pos == 0) {
      const std::span<char> input = TRY(from_->look());
      if (input.empty()) {
        if (inside_) return corrupt("{}: the zstd file ends too early: {} bytes came of it", name_, made_);
        return 0;
      }
      ZSTD_inBuffer given{.src = input.data(), .size = input.size(), .pos = 0};
      const size_t left = ZSTD_decompressStream(stream_.get(), &made, &given);
      if (ZSTD_isError(left)) {
        return corrupt("{}: the zstd file is damaged after {} bytes of text ({})", name_, made_,
                       ZSTD_getErrorName(left));
      }
      from_->use(given.pos);
      inside_ = left != 0;
    }
    made_ += made.pos;
    return made.pos;
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };

  std::unique_ptr<PeekedInput> from_;
  std::string name_;
  std::unique_ptr<ZSTD_DStream, Free> stream_;
  bool inside_ = false;  // a frame
  uint64_t made_ = 0;
};

// Reads until there are enough bytes to tell by, or no more.
Result<size_t> read_magic(Input& input, std::span<char> out) {
  size_t size = 0;
  while (size < kMagicBytes) {
    const size_t count = TRY(input.read(out.subspan(size)));
    if (count == 0) break;
    size += count;
  }
  return size;
}

}  // namespace

Compression compression_of(std::string_view first_bytes) {
  if (first_bytes.starts_with("\x1f\x8b")) return Compression::kGzip;
  if (first_bytes.starts_with("\x28\xb5\x2f\xfd")) return Compression::kZstd;
  // A frame to be skipped, of which pzstd writes one before each of its own: 0x184D2A50 to 0x184D2A5F.
  const bool skippable = first_bytes.size() >= kMagicBytes && (first_bytes[0] & '\xf0') == '\x50' &&
                         first_bytes.substr(1).starts_with("\x2a\x4d\x18");
  if (skippable) return Compression::kZstd;
  return Compression::kNone;
}

Result<std::string> first_bytes(FileStore& store, const std::string& uri) {
  const auto input = TRY(store.open(uri, {.begin = 0, .end = kMagicBytes}));
  std::string first(kMagicBytes, '\0');
  first.resize(TRY(read_magic(*input, first)));
  return first;
}

Result<Compression> compression_of(FileStore& store, const std::string& uri) {
  return compression_of(TRY(first_bytes(store, uri)));
}

Result<std::unique_ptr<Input>> decompress(std::unique_ptr<Input> input, std::string name) {
  std::vector<char> first(kReadBytes);
  const size_t size = TRY(read_magic(*input, first));
  const Compression compression = compression_of(std::string_view(first.data(), size));
  auto peeked = std::make_unique<PeekedInput>(std::move(input), std::move(first), size);
  if (compression == Compression::kGzip) return std::make_unique<GzipInput>(std::move(peeked), std::move(name));
  if (compression == Compression::kZstd) return std::make_unique<ZstdInput>(std::move(peeked), std::move(name));
  return peeked;
}

Result<std::unique_ptr<Input>> open_decompressed(FileStore& store, const std::string& uri, ByteRange range) {
  uint64_t begin = std::exchange(range.begin, 0);
  if (begin > 0 && TRY(compression_of(store, uri)) == Compression::kNone) {
    range.begin = begin;
    return store.open(uri, std::move(range));
  }
  auto input = TRY(decompress(TRY(store.open(uri, std::move(range))), uri));
  std::vector<char> skipped(begin > 0 ? kReadBytes : 0);
  while (begin > 0) {
    const size_t count = TRY(input->read(std::span(skipped).first(std::min<uint64_t>(skipped.size(), begin))));
    if (count == 0) break;
    begin -= count;
  }
  return input;
}

}  // namespace pscloud

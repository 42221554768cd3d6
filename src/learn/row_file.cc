#include "learn/row_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "base/bytes.h"
#include "base/check.h"
#include "io/crc32c.h"
#include "io/decompress.h"

namespace pscloud {
namespace {

constexpr std::string_view kRowFileMagic = "PSCLROWS";
constexpr uint32_t kRowFileVersion = 1;
constexpr size_t kRowHeaderBytes = 24;
constexpr size_t kRowEndBytes = 20;  // its count of 0 included
constexpr uint32_t kRowWidthMax = 65536;
constexpr uint32_t kRowFloatsMax = kRowWidthMax + (1 << 20);
constexpr size_t kBlockBytesWanted = 1 << 20;
constexpr uint64_t kBlockBytesMax = 16 << 20;
constexpr size_t kReadBytesMax = 1 << 20;

uint64_t row_bytes(uint32_t floats) { return sizeof(Key) + uint64_t{floats} * sizeof(float); }

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

uint32_t chain_of(const std::vector<uint32_t>& checks) { return crc32c(bytes_of(std::span<const uint32_t>(checks))); }

// Reads pieces of a known size.
class RowPieceReader {
 public:
  RowPieceReader(std::unique_ptr<Input> input, const std::string& uri) : input_(std::move(input)), uri_(uri) {}

  // The next bytes, behind `keep` of those before. kCorrupt if there are less; then hardly more memory was taken than
  // the file has bytes, whatever size it claims.
  Result<Bytes> next(size_t size, size_t keep = 0) {
    const size_t whole = keep + size;
    for (size_t have = keep; have < whole;) {
      piece_.resize(std::min(whole, have + kReadBytesMax));
      const size_t count = TRY(input_->read(std::span(piece_).subspan(have)));
      if (count == 0) return corrupt("{}: ends in the middle of its rows: it is not whole", uri_);
      have += count;
      offset_ += count;
    }
    return Bytes(std::as_bytes(std::span(piece_).first(whole)));
  }
  Result<> at_end() {
    char one = 0;
    if (TRY(input_->read(std::span(&one, 1))) == 0) return {};
    return corrupt("{}: goes on behind its end", uri_);
  }
  uint64_t offset() const { return offset_; }

 private:
  const std::unique_ptr<Input> input_;
  const std::string& uri_;
  std::vector<char> piece_;
  uint64_t offset_ = 0;
};

// The checksum that a piece ends with, if it is that of its bytes.
Result<uint32_t> check_of_piece(Bytes piece, const std::string& uri, uint64_t end) {
  uint32_t check = 0;
  const Bytes body = piece.first(piece.size() - sizeof check);
  std::memcpy(&check, piece.data() + body.size(), sizeof check);
  if (check == crc32c(body)) return check;
  return corrupt("{}: damaged: bytes {} to {} do not have their checksum", uri, end - piece.size(), end);
}

}  // namespace

RowFileWriter::RowFileWriter(std::unique_ptr<Output> output, uint32_t width) : output_(std::move(output)) {
  CHECK(width > 0 && width <= kRowWidthMax, "rows of {} values", width);
  info_.width = info_.floats = width;
}

Result<> RowFileWriter::write(std::span<const Key> keys, std::span<const float> floats) {
  if (keys.empty()) return {};
  const size_t each = floats.size() / keys.size();
  CHECK(floats.size() == keys.size() * each && each >= info_.width && each <= kRowFloatsMax, "{} floats of {} rows",
        floats.size(), keys.size());
  if (!begun_) TRY(write_header(static_cast<uint32_t>(each)));
  CHECK(each == info_.floats, "rows of {} floats, and of {}", info_.floats, each);
  const size_t most = std::max<size_t>(1, kBlockBytesWanted / row_bytes(info_.floats));
  for (size_t begin = 0; begin < keys.size(); begin += most) {
    const size_t count = std::min(most, keys.size() - begin);
    TRY(write_block(keys.subspan(begin, count), floats.subspan(begin * each, count * each)));
  }
  return {};
}

Result<> RowFileWriter::commit() {
  if (!begun_) TRY(write_header(info_.width));
  ByteWriter end;
  end.put(uint32_t{0});
  end.put(info_.rows);
  end.put(chain_of(checks_));
  TRY(write_checked(end));
  info_.check = checks_.back();
  return output_->commit();
}

Result<> RowFileWriter::write_header(uint32_t floats) {
  begun_ = true;
  info_.floats = floats;
  ByteWriter header;
  header.put_raw(bytes_of(kRowFileMagic));
  header.put(kRowFileVersion);
  header.put(info_.width);
  header.put(info_.floats);
  return write_checked(header);
}

Result<> RowFileWriter::write_block(std::span<const Key> keys, std::span<const float> floats) {
  info_.rows += keys.size();
  ByteWriter block;
  block.put(static_cast<uint32_t>(keys.size()));
  block.put_raw(bytes_of(keys));
  block.put_raw(bytes_of(floats));
  return write_checked(block);
}

Result<> RowFileWriter::write_checked(ByteWriter& bytes) {
  checks_.push_back(crc32c(bytes.bytes()));
  bytes.put(checks_.back());
  return output_->write(text_of(bytes.bytes()));
}

Result<bool> is_row_file(FileStore& store, const std::string& uri) {
  const auto input = TRY(open_decompressed(store, uri));
  std::string first(kRowFileMagic.size(), '\0');
  size_t have = 0;
  while (have < first.size()) {
    const size_t count = TRY(input->read(std::span(first).subspan(have)));
    if (count == 0) return false;
    have += count;
  }
  return first == kRowFileMagic;
}

Result<RowFileInfo> read_row_file(
    FileStore& store, const std::string& uri,
    const std::function<Result<>(const RowFileInfo&, std::span<const Key>, std::span<const float>)>& take) {
  RowPieceReader reader(TRY(open_decompressed(store, uri)), uri);
  std::vector<uint32_t> checks;
  const Bytes first = TRY(reader.next(kRowHeaderBytes));
  ByteReader header(first);
  if (text_of(header.get_raw(kRowFileMagic.size())) != kRowFileMagic) {
    return corrupt("{}: is no file of rows: it does not begin with {}", uri, kRowFileMagic);
  }
  if (const auto version = header.get<uint32_t>(); version != kRowFileVersion) {
    return corrupt("{}: has version {} of the format, and this program reads version {}", uri, version,
                   kRowFileVersion);
  }
  checks.push_back(TRY(check_of_piece(first, uri, reader.offset())));
  RowFileInfo info;
  info.width = header.get<uint32_t>();
  info.floats = header.get<uint32_t>();
  if (info.width == 0 || info.width > kRowWidthMax || info.floats < info.width || info.floats > kRowFloatsMax) {
    return corrupt("{}: rows of {} values and {} floats cannot be", uri, info.width, info.floats);
  }
  std::vector<Key> keys;
  std::vector<float> floats;
  while (true) {
    uint32_t count = 0;
    std::memcpy(&count, TRY(reader.next(sizeof count)).data(), sizeof count);
    if (count == 0) break;
    if (count > std::max<uint64_t>(1, kBlockBytesMax / row_bytes(info.floats))) {
      return corrupt("{}: damaged: {} rows at byte {} are more than a block has", uri, count, reader.offset());
    }
    const Bytes block = TRY(reader.next(count * row_bytes(info.floats) + sizeof(uint32_t), sizeof count));
    checks.push_back(TRY(check_of_piece(block, uri, reader.offset())));
    keys.resize(count);
    floats.resize(size_t{count} * info.floats);
    std::memcpy(keys.data(), block.data() + sizeof count, count * sizeof(Key));
    std::memcpy(floats.data(), block.data() + sizeof count + count * sizeof(Key), floats.size() * sizeof(float));
    const auto bad = std::ranges::find_if(floats, [](float one) { return !std::isfinite(one); });
    if (bad != floats.end()) {
      return corrupt("{}: the row of key {} has {}", uri, keys[static_cast<size_t>(bad - floats.begin()) / info.floats],
                     *bad);
    }
    info.rows += count;
    TRY(take(info, keys, floats));
  }
  const Bytes end = TRY(reader.next(kRowEndBytes - sizeof(uint32_t), sizeof(uint32_t)));
  info.check = TRY(check_of_piece(end, uri, reader.offset()));
  ByteReader last(end.subspan(sizeof(uint32_t)));
  if (last.get<uint64_t>() != info.rows || last.get<uint32_t>() != chain_of(checks)) {
    return corrupt("{}: blocks of rows are missing, or not its own", uri);
  }
  TRY(reader.at_end());
  return info;
}

}  // namespace pscloud

#include "io/piece_file.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"

namespace pscloud {
namespace {

constexpr size_t kKindBytes = 8;
constexpr size_t kPieceHeadBytes = 16;                   // size and checksum
constexpr uint64_t kPieceBytesMax = uint64_t{16} << 30;  // no machine has memory for more
constexpr size_t kPieceReadBytes = 4 << 20;

std::string_view as_text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

uint64_t first_check(std::string_view kind) {
  CHECK(kind.size() == kKindBytes, "'{}' has not eight letters", kind);
  return hash64(bytes_of(kind));
}

// Of a piece behind those that come to `before`.
uint64_t next_check(uint64_t before, Bytes piece) {
  return hash64(bytes_of(std::span<const uint64_t>(&before, 1)), piece);
}

}  // namespace

PieceWriter::PieceWriter(std::unique_ptr<Output> output, std::string_view kind)
    : output_(std::move(output)), kind_(kind), check_(first_check(kind)) {}

Result<> PieceWriter::write(Bytes piece) {
  CHECK(!piece.empty() && piece.size() <= kPieceBytesMax, "a piece of {} bytes", piece.size());
  return put(piece);
}

Result<> PieceWriter::commit() {
  TRY(put({}));
  return output_->commit();
}

Result<> PieceWriter::put(Bytes piece) {
  if (!kind_.empty()) TRY(output_->write(std::exchange(kind_, {})));
  check_ = next_check(check_, piece);
  const std::array<uint64_t, 2> head = {piece.size(), check_};
  TRY(output_->write(as_text(bytes_of(std::span<const uint64_t>(head)))));
  return piece.empty() ? Result<>() : output_->write(as_text(piece));
}

Result<PieceReader> PieceReader::open(FileStore& store, const std::string& uri, std::string_view kind) {
  PieceReader reader(TRY(store.open(uri, {})), uri);
  std::vector<std::byte> first;
  TRY(reader.read(first, 0, kKindBytes + kPieceHeadBytes));
  if (as_text(Bytes(first).first(kKindBytes)) != kind) return corrupt("{}: does not begin with {}", uri, kind);
  reader.check_ = first_check(kind);
  std::memcpy(&reader.size_, first.data() + kKindBytes, sizeof reader.size_);
  std::memcpy(&reader.next_check_, first.data() + kKindBytes + sizeof reader.size_, sizeof reader.next_check_);
  return reader;
}

Result<std::optional<Bytes>> PieceReader::next(std::vector<std::byte>& memory) {
  if (size_ > kPieceBytesMax) return corrupt("{}: damaged: a piece of {} bytes cannot be", uri_, size_);
  const size_t size = size_;
  // With what the piece behind it begins with.
  TRY(read(memory, 0, size == 0 ? 0 : size + kPieceHeadBytes));
  const Bytes piece = Bytes(memory).first(size);
  check_ = next_check(check_, piece);
  if (check_ != next_check_) return corrupt("{}: damaged: a piece of {} bytes does not have its checksum", uri_, size);
  if (size == 0) {
    char one = 0;
    if (TRY(input_->read(std::span(&one, 1))) > 0) return corrupt("{}: goes on behind its end", uri_);
    return std::nullopt;
  }
  std::memcpy(&size_, memory.data() + size, sizeof size_);
  std::memcpy(&next_check_, memory.data() + size + sizeof size_, sizeof next_check_);
  return std::optional(piece);
}

// So many bytes to this place.
Result<> PieceReader::read(std::vector<std::byte>& memory, size_t from, size_t size) {
  const size_t end = from + size;
  while (from < end) {
    const size_t most = std::min(end, from + kPieceReadBytes);
    if (memory.size() < most) memory.resize(most);
    const size_t count = TRY(input_->read({reinterpret_cast<char*>(memory.data()) + from, most - from}));
    if (count == 0) return corrupt("{}: is cut short", uri_);
    from += count;
  }
  return {};
}

}  // namespace pscloud

#include "io/recordio.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "io/decompress.h"

namespace pscloud {
namespace {

constexpr uint32_t kPlainMagic = 0x3ed7230a;
constexpr uint32_t kAlignedMagic = 0xced7230a;
constexpr size_t kHeadBytes = 8;
constexpr size_t kRecordChunkBytes = 256 << 10;

// What dmlc-core's flag says of a piece.
enum RecordPiece : uint32_t { kWholeRecord, kFirstPiece, kMiddlePiece, kLastPiece };
constexpr int kFlagShift = 29;
constexpr uint32_t kLengthMask = (1u << kFlagShift) - 1;

uint32_t load_word(const char* at) {
  uint32_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

void append_word(uint32_t word, std::string& text) { text.append(reinterpret_cast<const char*>(&word), sizeof word); }

}  // namespace

RecordKind record_kind(std::string_view first_bytes) {
  if (first_bytes.size() < sizeof(uint32_t)) return RecordKind::kNone;
  const uint32_t magic = load_word(first_bytes.data());
  if (magic == kPlainMagic) return RecordKind::kPlain;
  return magic == kAlignedMagic ? RecordKind::kAligned : RecordKind::kNone;
}

Result<RecordKind> record_kind(FileStore& store, const std::string& uri) {
  const std::string first = TRY(first_bytes(store, uri));
  if (compression_of(first) == Compression::kNone) return record_kind(first);
  const auto input = TRY(open_decompressed(store, uri));
  std::array<char, sizeof(uint32_t)> unpacked{};
  size_t size = 0;
  while (size < unpacked.size()) {
    const size_t count = TRY(input->read(std::span(unpacked).subspan(size)));
    if (count == 0) break;
    size += count;
  }
  return record_kind(std::string_view(unpacked.data(), size));
}

Result<RecordReader> RecordReader::open(FileStore& store, const std::string& uri, ByteRange range) {
  const RecordKind kind = TRY(record_kind(store, uri));
  // Records are found at multiples of four.
  if (kind == RecordKind::kAligned) range.begin += (4 - range.begin % 4) % 4;
  RecordReader reader(
      TRY(open_decompressed(store, uri, {.begin = range.begin, .ahead_end = range.end, .version = range.version})),
      kind, range);
  if (kind == RecordKind::kNone && TRY(reader.have(1))) {
    return invalid("{}: no file of records: it begins with neither {:#x} nor {:#x}", uri, kPlainMagic, kAlignedMagic);
  }
  if (kind == RecordKind::kAligned && range.begin > 0 && !(TRY(reader.have(kHeadBytes)) && reader.begins_record())) {
    TRY(reader.find_record());  // the one that goes on here is the part's before
  }
  return reader;
}

RecordReader::RecordReader(std::unique_ptr<Input> input, RecordKind kind, const ByteRange& range)
    : input_(std::move(input)), kind_(kind), end_(range.end), buffer_(kRecordChunkBytes), offset_(range.begin) {}

// Reads until so many bytes are there; false if the file ends before.
Result<bool> RecordReader::have(size_t bytes) {
  while (left() < bytes && !at_end_) {
    if (filled_ == buffer_.size()) {
      std::memmove(buffer_.data(), buffer_.data() + at_, left());
      filled_ -= std::exchange(at_, 0);
      // Only what is really there makes it grow, whatever a length claims.
      if (filled_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
    }
    const size_t count = TRY(input_->read(std::span(buffer_).subspan(filled_)));
    filled_ += count;
    at_end_ = count == 0;
  }
  return left() >= bytes;
}

uint32_t RecordReader::word(size_t place) const { return load_word(buffer_.data() + at_ + place); }

// At least kHeadBytes are there.
bool RecordReader::begins_record() const {
  if (kind_ == RecordKind::kPlain) return word(0) == kPlainMagic;
  return word(0) == kAlignedMagic && word(4) >> kFlagShift <= kFirstPiece;
}

void RecordReader::skip(size_t bytes) {
  at_ += bytes;
  offset_ += bytes;
}

// Goes on to where the next record begins: behind here.
Result<> RecordReader::find_record() {
  const size_t step = kind_ == RecordKind::kAligned ? 4 : 1;
  while (offset_ < end_ && TRY(have(kHeadBytes + step))) {
    skip(step);
    if (begins_record()) return {};
  }
  skip(left());
  at_end_ = true;
  return {};
}

Result<Record> RecordReader::damaged(uint64_t offset, std::string damage) {
  TRY(find_record());
  return Record{.bytes = {}, .offset = offset, .damage = std::move(damage)};
}

Result<std::optional<Record>> RecordReader::next() {
  if (offset_ >= end_ || !TRY(have(1))) return std::nullopt;
  if (!TRY(have(kHeadBytes))) return TRY(damaged(offset_, "the file ends within the head of a record"));
  if (!begins_record()) return TRY(damaged(offset_, "no record begins here"));
  return TRY(kind_ == RecordKind::kPlain ? read_plain() : read_aligned());
}

Result<Record> RecordReader::read_plain() {
  const uint64_t begin = offset_;
  const uint32_t length = word(4);
  if (length > kRecordBytesMax) {
    return damaged(begin, fmt::format("the record has {} bytes, more than {}", length, kRecordBytesMax));
  }
  if (!TRY(have(kHeadBytes + length))) return damaged(begin, "the file ends within the record");
  const Record record{.bytes = {buffer_.data() + at_ + kHeadBytes, length}, .offset = begin, .damage = {}};
  skip(kHeadBytes + length);
  return record;
}

Result<Record> RecordReader::read_aligned() {
  const uint64_t begin = offset_;
  joined_.clear();
  while (true) {
    const uint32_t piece = word(4) >> kFlagShift;
    const uint32_t length = word(4) & kLengthMask;
    const size_t padded = (length + size_t{3}) / 4 * 4;
    if (joined_.size() + length > kRecordBytesMax) {
      return damaged(begin, fmt::format("the record has more than {} bytes", kRecordBytesMax));
    }
    if (!TRY(have(kHeadBytes + padded))) return damaged(begin, "the file ends within the record");
    const std::string_view bytes(buffer_.data() + at_ + kHeadBytes, length);
    if (piece == kWholeRecord) {
      skip(kHeadBytes + padded);
      return Record{.bytes = bytes, .offset = begin, .damage = {}};
    }
    if (piece != kFirstPiece) append_word(kAlignedMagic, joined_);  // where the magic was left out
    joined_ += bytes;
    skip(kHeadBytes + padded);
    if (piece == kLastPiece) return Record{.bytes = joined_, .offset = begin, .damage = {}};
    if (!TRY(have(kHeadBytes))) return damaged(begin, "the file ends within the record");
    const uint32_t next_piece = word(4) >> kFlagShift;
    if (word(0) != kAlignedMagic || (next_piece != kMiddlePiece && next_piece != kLastPiece)) {
      if (!begins_record()) TRY(find_record());
      return Record{.bytes = {}, .offset = begin, .damage = "pieces of the record are missing"};
    }
  }
}

void append_record(std::string_view bytes, std::string& text) {
  CHECK(bytes.size() <= RecordReader::kRecordBytesMax, "a record of {} bytes", bytes.size());
  append_word(kPlainMagic, text);
  append_word(static_cast<uint32_t>(bytes.size()), text);
  text += bytes;
}

}  // namespace pscloud

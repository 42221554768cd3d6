#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/file_store.h"

namespace pscloud {

// Two ways to put records into a file, told apart by the four bytes that each record begins with.
enum class RecordKind {
  kNone,  // neither
  // dmlc's parameter server (format PROTO): magic 0x3ed7230a, length (u32), bytes. Nothing keeps the bytes from looking
  // like the beginning of a record, so a file can only be read from a place that is known to be one.
  kPlain,
  // dmlc-core's RecordIO: magic 0xced7230a, a word with length (29 bits) and flag (3 bits), bytes, zeros up to a
  // multiple of four. A record that holds the magic at a multiple of four is written in pieces without it: wherever it
  // stands, a record or a piece begins.
  kAligned,
};

// By the first bytes of what is in a file, decompressed.
RecordKind record_kind(std::string_view first_bytes);
Result<RecordKind> record_kind(FileStore& store, const std::string& uri);

struct Record {
  std::string_view bytes;  // until the next call of next()
  uint64_t offset = 0;     // where it begins
  std::string damage;      // not empty: it is none, for this reason
};

// Reads the records of a file, or of a part of it, decompressed if need be. One thread.
class RecordReader {
 public:
  static constexpr uint64_t kRecordBytesMax = 64 << 20;  // a longer one has a damaged length

  // Those that begin in `range`, in bytes of what is in the file; with kPlain, range.begin must be where one does.
  // kInvalid if the file does not begin as one of records does.
  static Result<RecordReader> open(FileStore& store, const std::string& uri, ByteRange range);

  // Nothing at the end. Damage is told once; then come the records behind it that can be found by their magic.
  Result<std::optional<Record>> next();
  // Where that begins, or the end of the file.
  uint64_t offset() const { return offset_; }

 private:
  RecordReader(std::unique_ptr<Input> input, RecordKind kind, const ByteRange& range);

  Result<bool> have(size_t bytes);
  size_t left() const { return filled_ - at_; }
  uint32_t word(size_t place) const;
  bool begins_record() const;
  void skip(size_t bytes);
  Result<> find_record();
  Result<Record> damaged(uint64_t offset, std::string damage);
  Result<Record> read_plain();
  Result<Record> read_aligned();

  std::unique_ptr<Input> input_;
  RecordKind kind_;
  uint64_t end_;
  std::vector<char> buffer_;
  size_t at_ = 0;
  size_t filled_ = 0;
  uint64_t offset_ = 0;  // of at_ in the file
  bool at_end_ = false;  // nothing is left to be read into the buffer
  std::string joined_;   // pieces of a record
};

// Writes a record of the plain kind.
void append_record(std::string_view bytes, std::string& text);

}  // namespace pscloud

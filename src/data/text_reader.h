#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/file_part.h"
#include "io/file_store.h"

namespace pscloud {

// Reads the lines of a part of a file, many at a time, decompressed if need be.
class TextReader {
 public:
  static constexpr size_t kChunkBytes = 64 << 10;   // in the cache while it is parsed
  static constexpr size_t kLineBytesMax = 1 << 30;  // a file with longer ones is hardly text

  // `chunk_bytes`: about how much to read at a time.
  static Result<TextReader> open(FileStore& store, FilePart part, size_t chunk_bytes = kChunkBytes);

  // The next lines, at least one and all of them whole; empty at the end. They stay until the next call, and
  // kScanPadding bytes behind them can be read.
  Result<std::string_view> next();
  // Where they begin in the text of the file.
  uint64_t offset() const { return offset_; }

 private:
  TextReader(std::unique_ptr<Input> input, FilePart part, size_t chunk_bytes);
  Result<> fill();
  Result<> skip_line();

  std::unique_ptr<Input> input_;
  FilePart part_;
  std::vector<char> buffer_;
  size_t filled_ = 0;
  size_t used_ = 0;      // by the lines that next() returned
  uint64_t offset_ = 0;  // of the buffer in the text
  bool at_end_ = false;  // of the file
  bool done_ = false;    // with the part
};

// A place in the text of a file, and the number of its line, from 1 on.
struct LinePlace {
  uint64_t offset = 0;
  uint64_t line = 1;
};

// The number of the line that has this place. Reads the file from a place before it that is known: its beginning, or
// that of an earlier answer.
Result<uint64_t> line_number(FileStore& store, const std::string& uri, uint64_t offset, const LinePlace& known = {});

}  // namespace pscloud

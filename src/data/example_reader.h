#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/file_part.h"
#include "data/parser.h"
#include "data/row_block.h"
#include "data/text_reader.h"
#include "io/recordio.h"

namespace pscloud {

// A line or a record that is no example.
struct BadLine {
  std::string uri;
  uint64_t offset = 0;  // of the place in the text of the file; of a record where it begins
  std::string reason;
  bool is_record = false;
};

// Examples of files, in minibatches of any size. One thread.
class ExampleReader {
 public:
  static constexpr size_t kBadLinesKept = 8;

  // `store` is borrowed. `chunk_bytes`: about how much text to parse at a time.
  ExampleReader(FileStore& store, std::unique_ptr<Parser> parser, size_t chunk_bytes = TextReader::kChunkBytes)
      : store_(store), parser_(std::move(parser)), chunk_bytes_(chunk_bytes) {}

  // The examples of this part come next.
  Result<> open(const FilePart& part);

  // The next examples of the part: `rows`, or what is left of it; none at its end. They stay until the next call.
  Result<RowSlice> next(size_t rows);

  // Lines that were left out, of all parts so far: how many, and the first of them.
  uint64_t bad_lines() const { return bad_lines_; }
  const std::vector<BadLine>& first_bad_lines() const { return first_bad_lines_; }

 private:
  Result<bool> parse_more();
  Result<bool> parse_lines();
  Result<bool> parse_records();
  void note(const BadLines& bad, uint64_t offset);

  FileStore& store_;
  std::unique_ptr<Parser> parser_;
  const size_t chunk_bytes_;
  std::string uri_;
  std::optional<TextReader> text_;  // or
  std::optional<RecordReader> records_;
  RowBlock block_;
  size_t used_ = 0;  // rows of the block
  uint64_t bad_lines_ = 0;
  std::vector<BadLine> first_bad_lines_;
};

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "data/file_part.h"
#include "data/parser.h"
#include "data/row_block.h"
#include "data/text_reader.h"
#include "io/recordio.h"

namespace pscloud {

// Examples of files, in minibatches of any size. One thread.
class ExampleReader {
 public:
  // `store` is borrowed. `chunk_bytes`: about how much text to parse at a time.
  ExampleReader(FileStore& store, std::unique_ptr<Parser> parser, size_t chunk_bytes = TextReader::kChunkBytes)
      : store_(store), parser_(std::move(parser)), chunk_bytes_(chunk_bytes) {}

  // The examples of this part come next.
  Result<> open(const FilePart& part);

  // The next examples of the part: `rows`, or what is left of it; none at its end. They stay until the next call.
  Result<RowSlice> next(size_t rows);

  // Of the part: lines or records that are no examples, and were left out (but see Labels). A line is told by the place
  // of what is wrong in the text of the file, a record by where it begins.
  const BadLines& bad_lines() const { return bad_; }
  bool reads_records() const { return parser_->reads_records(); }

 private:
  Result<bool> parse_more();
  Result<bool> parse_lines();
  Result<bool> parse_records();
  void note(const BadLines& bad, uint64_t offset);

  FileStore& store_;
  std::unique_ptr<Parser> parser_;
  const size_t chunk_bytes_;
  std::optional<TextReader> text_;  // or
  std::optional<RecordReader> records_;
  RowBlock block_;
  size_t used_ = 0;  // rows of the block
  BadLines bad_;
};

}  // namespace pscloud

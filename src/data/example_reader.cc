#include "data/example_reader.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace pscloud {

Result<> ExampleReader::open(const FilePart& part) {
  block_.clear();
  used_ = 0;
  bad_ = {};
  text_.reset();
  records_.reset();
  if (parser_->reads_records()) {
    records_ =
        TRY(RecordReader::open(store_, part.uri, {.begin = part.begin, .end = part.end, .version = part.version}));
  } else {
    text_ = TRY(TextReader::open(store_, part, chunk_bytes_));
  }
  return {};
}

Result<RowSlice> ExampleReader::next(size_t rows) {
  CHECK(text_ || records_, "open() comes first");
  if (block_.rows() - used_ < rows) {
    block_.drop_front(std::exchange(used_, 0));
    while (block_.rows() < rows && TRY(parse_more())) continue;
  }
  const size_t first = used_;
  used_ = std::min(block_.rows(), first + rows);
  return slice_of(block_, first, used_ - first);
}

// False at the end of the part.
Result<bool> ExampleReader::parse_more() { return records_ ? parse_records() : parse_lines(); }

Result<bool> ExampleReader::parse_lines() {
  const std::string_view text = TRY(text_->next());
  if (text.empty()) return false;
  BadLines bad;
  parser_->parse(text, block_, bad);
  note(bad, text_->offset());
  return true;
}

Result<bool> ExampleReader::parse_records() {
  size_t bytes = 0;
  while (bytes < chunk_bytes_) {
    const auto record = TRY(records_->next());
    if (!record) return bytes > 0;
    bytes += record->bytes.size() + 1;
    BadLines bad;
    if (record->damage.empty()) {
      parser_->parse_record(record->bytes, block_, bad);
      for (BadLines::One& one : bad.first) one.offset = 0;
    } else {
      parser_->end_bad(block_);
      bad.add(0, record->damage);
    }
    note(bad, record->offset);
  }
  return true;
}

// `offset`: of what they are in.
void ExampleReader::note(const BadLines& bad, uint64_t offset) {
  bad_.count += bad.count - bad.first.size();
  for (const BadLines::One& one : bad.first) bad_.add(offset + one.offset, one.reason);
}

}  // namespace pscloud

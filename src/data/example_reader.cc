#include "data/example_reader.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace pscloud {

Result<> ExampleReader::open(const FilePart& part) {
  block_.clear();
  used_ = 0;
  uri_ = part.uri;
  text_.reset();
  text_ = TRY(TextReader::open(store_, part, chunk_bytes_));
  return {};
}

Result<RowSlice> ExampleReader::next(size_t rows) {
  CHECK(text_.has_value(), "open() comes first");
  if (block_.rows() - used_ < rows) {
    block_.drop_front(std::exchange(used_, 0));
    while (block_.rows() < rows && TRY(parse_more())) continue;
  }
  const size_t first = used_;
  used_ = std::min(block_.rows(), first + rows);
  return slice_of(block_, first, used_ - first);
}

// False at the end of the part.
Result<bool> ExampleReader::parse_more() {
  const std::string_view text = TRY(text_->next());
  if (text.empty()) return false;
  BadLines bad;
  parser_->parse(text, block_, bad);
  bad_lines_ += bad.count;
  for (BadLines::One& one : bad.first) {
    if (first_bad_lines_.size() == kBadLinesKept) break;
    first_bad_lines_.push_back({uri_, text_->offset() + one.offset, std::move(one.reason)});
  }
  return true;
}

}  // namespace pscloud

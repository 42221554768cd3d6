#include "launch/agent/line_buffer.h"

#include <algorithm>

namespace pscloud {
namespace {

// Where to cut `text` at `most` or up to three bytes before, so that no character is split.
size_t whole_characters(std::string_view text, size_t most) {
  size_t end = most;
  while (end > 0 && most - end < 3 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return end == 0 ? most : end;
}

}  // namespace

std::string LineBuffer::take(size_t count) {
  std::string text = bytes_.substr(taken_, count);
  taken_ += count;
  return text;
}

std::optional<LineBuffer::Line> LineBuffer::next() {
  const size_t end = bytes_.find('\n', std::max(searched_, taken_));
  if (end != std::string::npos && end - taken_ <= line_max_) {
    Line line{take(end - taken_), false};
    ++taken_;
    return line;
  }
  if (bytes_.size() - taken_ > line_max_) {
    return Line{take(whole_characters(std::string_view(bytes_).substr(taken_), line_max_)), true};
  }
  // Nothing whole is left: the moment to forget what was taken.
  bytes_.erase(0, taken_);
  taken_ = 0;
  searched_ = bytes_.size();
  return std::nullopt;
}

std::string LineBuffer::rest() {
  std::string text = take(bytes_.size() - taken_);
  bytes_.clear();
  taken_ = searched_ = 0;
  return text;
}

}  // namespace pscloud

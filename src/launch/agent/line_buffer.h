#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace pscloud {

// Bytes in, lines out. A line that is longer than `line_max` comes in pieces, each of whole UTF-8 characters, so that
// what is kept has a bound.
class LineBuffer {
 public:
  struct Line {
    std::string text;        // without the end of line
    bool continues = false;  // a piece: the next one goes on
  };

  explicit LineBuffer(size_t line_max) : line_max_(line_max) {}

  void add(std::string_view bytes) { bytes_ += bytes; }

  // The next line that is whole, or piece that is full.
  std::optional<Line> next();

  // What is left without an end of line: the last line of one who has ended.
  std::string rest();

 private:
  std::string take(size_t count);

  size_t line_max_;
  std::string bytes_;
  size_t taken_ = 0;     // of bytes_
  size_t searched_ = 0;  // of bytes_: no end of line between taken_ and here
};

}  // namespace pscloud

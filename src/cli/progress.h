#pragma once

#include <string_view>

namespace pscloud {

// A line on stderr that tells a person how far something is. Silent if nobody looks (stderr is no terminal). It is
// wiped away at the end.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::string_view text);

 private:
  const bool seen_;
};

}  // namespace pscloud

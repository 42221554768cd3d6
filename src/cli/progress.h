#pragma once

#include <string_view>

namespace pscloud {

// A line on stderr that tells a person how far something is. Silent if nobody looks (stderr is no terminal). It is
// wiped away at the end.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::string_view text);

 private:
  const bool seen_;
};

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "pscloud/error.h"

namespace pscloud {

// A run's samples.csv, lines "unix_ms,task,name,value": only appended to, until it passes its limit. Then it is made
// half as large: of each series those samples stay that are a certain share of their age apart. So a run of any length
// keeps its whole course, the older the coarser. The new file is written aside and takes the place of the old one at
// once. One thread.
class SampleFile {
 public:
  static constexpr uint64_t kBytesMax = uint64_t{64} << 20;

  explicit SampleFile(std::string path, uint64_t bytes_max = kBytesMax)
      : path_(std::move(path)), bytes_max_(bytes_max) {}

  // Whole lines.
  Result<> append(std::string_view rows);

 private:
  Result<> open();
  Result<> thin_out();

  const std::string path_;
  const uint64_t bytes_max_;
  Fd file_;
  uint64_t bytes_ = 0;
};

}  // namespace pscloud

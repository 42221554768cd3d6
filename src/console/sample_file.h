#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace pscloud {

// What the launcher has measured of a run, in its folder: lines `unix_ms,task,name,value`, only appended, in the order
// of time but for a moment.
inline constexpr const char* kSampleFile = "samples.csv";

// Borrows the line.
struct Sample {
  int64_t unix_ms = 0;
  std::string_view task;
  std::string_view name;
  double value = 0;
};
std::optional<Sample> parse_sample(std::string_view line);

// Calls `take` with each sample of the whole lines between two places of the file, neither of which need be a line's
// begin. No file: none.
void read_samples(const std::string& path, uint64_t begin, uint64_t end,
                  const std::function<void(const Sample& sample)>& take);

// Where samples of a time or later begin, give or take a moment: by halving.
uint64_t find_sample_time(const std::string& path, uint64_t bytes, int64_t unix_ms);

}  // namespace pscloud

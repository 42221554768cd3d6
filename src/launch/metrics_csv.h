#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/backend.h"
#include "pscloud/error.h"

namespace pscloud {

// The figures of a line such as "**metrics_data: loss=0.5,auc=0.7"; none of any other.
Figures figures_of_line(std::string_view line);

// Lines of tasks that begin with "**metrics_data: " are figures, "loss=0.5,auc=0.7", as in Paddle's tool for clusters:
// each becomes a row of a CSV file, with the time and the task in front. A figure that comes up later is a new column;
// rows from before are shorter.
class MetricsCsv {
 public:
  explicit MetricsCsv(std::string path) : path_(std::move(path)) {}

  // Any line; one that has no figures is none.
  Result<> take(std::string_view task, std::string_view line);
  Result<> flush();

 private:
  std::string path_;
  std::vector<std::string> columns_;  // beside time and task
  bool header_is_new_ = false;
  std::string rows_;  // not yet in the file
};

}  // namespace pscloud

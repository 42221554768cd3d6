#pragma once

#include <map>
#include <string>
#include <string_view>

#include "console/sample_file.h"
#include "launch/run_folder.h"

namespace pscloud {

// A run as the API tells it (GET /api/runs/RUN). Borrows the folder.
class RunView {
 public:
  explicit RunView(const RunFolder& folder);

  // The latest of each task.
  void take(const Sample& sample);
  // From the end of the file: no more than what the last moments have written.
  void take_last_samples();

  Result<std::string> json() const;

 private:
  struct Latest {
    int64_t unix_ms = 0;
    std::map<std::string, double, std::less<>> values;
  };

  const RunFolder& folder_;
  std::string framework_;
  std::map<std::string, Latest, std::less<>> latest_;  // by task
};

}  // namespace pscloud

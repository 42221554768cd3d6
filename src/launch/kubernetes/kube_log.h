#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launch/agent/line_buffer.h"
#include "launch/backend.h"

namespace pscloud {

// The log of a pod as the API sends it: "2026-11-17T09:19:19.547457094Z text" lines, stdout and stderr alike. A stream
// that broke is opened again from the time of the last line on: each line counts once.
class KubeLog {
 public:
  explicit KubeLog(TaskId task) : task_(task) {}

  void begin_stream();
  void take(std::string_view bytes, std::vector<TaskEvent>& events);
  // It will write no more.
  void end(std::vector<TaskEvent>& events);

  // The time of the last line; empty if none has come.
  const std::string& last() const { return last_; }

 private:
  void take_line(LineBuffer::Line line, std::vector<TaskEvent>& events);

  TaskId task_;
  LineBuffer lines_{64 << 10};
  bool inside_ = false;   // the last piece did not end its line
  bool skipped_ = false;  // that line had come before
  std::string last_;
  uint64_t count_ = 0;  // of lines with that time
  uint64_t seen_ = 0;   // of them in this stream
};

}  // namespace pscloud

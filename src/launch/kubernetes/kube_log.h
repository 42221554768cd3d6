#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launch/agent/line_buffer.h"
#include "launch/backend.h"

namespace pscloud {

// The log of a pod as the API sends it: "2026-11-17T09:19:19.547457094Z text" lines, stdout and stderr alike. A stream
// that broke is opened again from the time of the last line on: each line counts once, and of a long one that had come
// in part only the rest does.
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
  static constexpr size_t kWhole = SIZE_MAX;

  void take_line(LineBuffer::Line line, std::vector<TaskEvent>& events);
  // How many bytes of the line that begins at this time have come before.
  size_t known_of(const std::string& time);

  TaskId task_;
  LineBuffer lines_{64 << 10};
  bool inside_ = false;  // the last piece did not end its line
  size_t skip_ = 0;      // bytes of that line that are still to come again
  std::string last_;     // its time; of that:
  uint64_t count_ = 0;   // lines that have begun
  uint64_t seen_ = 0;    // of them in this stream
  size_t given_ = 0;     // bytes of the last line; kWhole if it has ended
};

}  // namespace pscloud

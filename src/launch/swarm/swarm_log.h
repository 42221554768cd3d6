#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launch/agent/line_buffer.h"
#include "launch/backend.h"

namespace pscloud {

// What an engine sends of the log of a service that has one task: frames of eight bytes (1 for stdout or 2 for stderr,
// three zeros, the length with the highest byte first) and then "2026-11-17T09:19:19.547457094Z text". The same may be
// sent again, from any time on: each part counts once.
class SwarmLog {
 public:
  explicit SwarmLog(TaskId task) : task_(task) {}

  // Bytes of a stream; a new one begins with a whole frame.
  void begin_stream();
  Result<> take(std::string_view bytes, std::vector<TaskEvent>& events);
  // It will write no more: what stands without an end of line is a line.
  void end(std::vector<TaskEvent>& events);

  // From when on a new stream must tell, in seconds since 1970; "0" if nothing has come. A little earlier than the last
  // that has: stdout and stderr need not come in the order of time.
  std::string since() const;

 private:
  struct Pipe {
    LineBuffer lines{64 << 10};
    std::string last;    // the time of the newest part
    uint64_t count = 0;  // of parts with that time
    uint64_t seen = 0;   // of them in this stream
  };

  void take_frame(Pipe& pipe, bool is_stderr, std::string_view frame, std::vector<TaskEvent>& events);
  void give_lines(Pipe& pipe, bool is_stderr, std::vector<TaskEvent>& events);

  TaskId task_;
  std::string buffer_;
  std::array<Pipe, 2> pipes_;
};

}  // namespace pscloud

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json_value.h"
#include "launch/agent/agent_message.h"
#include "launch/agent/line_stream.h"

namespace pscloud {

// The launcher's side of a stream to an agent, which is another program on another machine: what it sends has bounds,
// and a line that is not as it should be ends the stream. Does not block. One thread.
class AgentStream {
 public:
  AgentStream(Fd in, Fd out) : lines_(std::move(in), std::move(out), kAgentLineMax) {}

  void send(const std::string& line) { lines_.send_line(line); }

  // What has come: at most `events_max` events, so that one who writes much does not keep the launcher from the rest.
  // Answers in the order of the questions.
  void read(size_t events_max, std::vector<TaskEvent>& events, std::vector<JsonValue>& answers);

  // Set when nothing more will come: why.
  const std::optional<std::string>& broken() const { return broken_; }

  void add_to(std::vector<pollfd>& polled) const {
    if (!broken_) lines_.add_to(polled);
  }
  // The agent sees the end, and ends.
  void close() { lines_.close_output(); }

  // For what is said before both speak in lines of ours (ssh_connection.h).
  LineStream& lines() { return lines_; }

 private:
  LineStream lines_;
  std::optional<std::string> broken_;
};

}  // namespace pscloud

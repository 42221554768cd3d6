#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launch/agent/agent_stream.h"
#include "launch/process/spawn.h"

namespace pscloud {

// A child process through which an agent is spoken to: the agent itself, or ssh. It is not killed with this process: an
// agent must see that its launcher is gone, and end its tasks. One thread.
class AgentConnection {
 public:
  // Starts `arguments` with the stream as stdin and stdout; `started` is called before it runs.
  static Result<AgentConnection> open(std::string host, const std::vector<std::string>& arguments,
                                      const std::vector<std::string>& environment,
                                      std::function<Result<>(pid_t)> started = {});

  AgentConnection(AgentConnection&& other) noexcept;
  AgentConnection& operator=(AgentConnection&&) = delete;
  // Ends it, at once if end() was not called before.
  ~AgentConnection();

  const std::string& host() const { return host_; }
  AgentStream& stream() { return stream_; }

  void add_to(std::vector<pollfd>& polled) const;
  // Keeps the last of what it writes to stderr, which says why a connection failed.
  void read_complaints();
  const std::string& complaints() const { return complaints_; }
  // After the stream broke: its complaint if it has one, else how the stream ended.
  std::string why();

  // Lets it see the end of the stream and waits until it has ended; kills it at `deadline`. False if that was needed.
  bool end(std::chrono::steady_clock::time_point deadline);

 private:
  AgentConnection(std::string host, pid_t pid, AgentStream stream, Fd complaints);
  bool has_ended();

  std::string host_;
  pid_t pid_;  // -1 once it was waited for
  AgentStream stream_;
  Fd complaint_fd_;
  std::string complaints_;
};

}  // namespace pscloud

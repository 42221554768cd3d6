#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "launch/agent/agent_link.h"
#include "launch/agent/agent_message.h"
#include "launch/agent/line_stream.h"

namespace pscloud {

// The agent's side of a stream: pipes of a local launcher, ssh's, or a TCP connection. Lines as in agent_message.h.
// What is wrong with a line ends the stream: after that nobody knows what was meant.
class StreamLink final : public AgentLink {
 public:
  // Answers a question (an object) by another, as text.
  using Answer = std::function<std::string(const JsonValue& question)>;

  // A launcher that says nothing for `silence_ms` is gone; 0: only the end of the stream tells.
  StreamLink(Fd in, Fd out, int silence_ms, Answer answer, Time now);

  void say(const TaskEvent& event) override { stream_.send_line(agent_line(event)); }
  std::optional<LauncherWord> next(Time now) override;
  void add_to(std::vector<pollfd>& polled) const override { stream_.add_to(polled); }
  Time ask_again(Time now) const override;
  bool is_full() const override { return stream_.unsent() > kUnsentMax; }
  bool flush(Time deadline) override;

 private:
  static constexpr size_t kUnsentMax = 1 << 20;

  LauncherWord gone(std::string why);

  LineStream stream_;
  const std::chrono::milliseconds silence_;
  const Answer answer_;
  Time heard_;
  bool gone_ = false;
};

}  // namespace pscloud

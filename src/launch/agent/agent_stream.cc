#include "launch/agent/agent_stream.h"

#include <fmt/core.h>

#include "base/text.h"

namespace pscloud {
namespace {

constexpr size_t kShown = 100;  // bytes of a line that is wrong

}  // namespace

void AgentStream::read(size_t events_max, std::vector<TaskEvent>& events, std::vector<JsonValue>& answers) {
  for (size_t count = 0; count < events_max && !broken_; ++count) {
    const auto text = lines_.next_line();
    if (!text) {
      broken_ = lines_.broken();
      return;
    }
    auto line = parse_agent_line(*text);
    if (!line) {
      broken_ = fmt::format("the agent said what cannot be understood: {}: '{}'", line.error().message,
                            escape_controls(std::string_view(*text).substr(0, kShown)));
    } else if (line->event) {
      events.push_back(*std::move(line->event));
    } else {
      answers.push_back(std::move(line->answer));
    }
  }
}

}  // namespace pscloud

// The lines between agents and launchers (docs/launch-agent.md): the first byte of the input chooses who reads it. What
// one side reads it must write so that it is read the same again; what is wrong is an error that says so.
#include <string>
#include <string_view>

#include "base/check.h"
#include "launch/agent/agent_message.h"

namespace pscloud {
namespace {

void read_as_launcher(std::string_view line) {
  const auto read = parse_agent_line(line);
  if (!read) {
    CHECK(read.error().code == Code::kCorrupt);
    return;
  }
  CHECK(read->event.has_value() || read->answer.is(JsonValue::Kind::kObject));
  if (!read->event) return;
  const std::string again = agent_line(*read->event);
  CHECK(again.find('\n') == std::string::npos);
  const auto twice = parse_agent_line(again);
  CHECK(twice.has_value() && twice->event.has_value());
  CHECK(agent_line(*twice->event) == again);
}

void read_as_agent(std::string_view line) {
  const auto read = parse_launcher_line(line);
  if (!read) {
    CHECK(read.error().code == Code::kCorrupt);
    return;
  }
  if (!read->word) return;
  const LauncherWord& word = *read->word;
  std::string again;
  if (word.kind == LauncherWord::Kind::kStart) {
    again = start_line(word.spec);
  } else if (word.kind == LauncherWord::Kind::kView) {
    again = view_line(word.view);
  } else {
    CHECK(word.kind == LauncherWord::Kind::kStop);
    again = stop_line(word.task, word.at_once);
  }
  CHECK(again.find('\n') == std::string::npos);
  CHECK(parse_launcher_line(again).has_value());
}

}  // namespace
}  // namespace pscloud

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view line(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    pscloud::read_as_launcher(line);
  } else {
    pscloud::read_as_agent(line);
  }
  return 0;
}

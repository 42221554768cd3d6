#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json_value.h"
#include "launch/agent/agent_link.h"
#include "launch/backend.h"

namespace pscloud {

// The lines that agents and launchers say to each other over a stream; docs/launch-agent.md specifies them. All are one
// object of JSON, without the end of line. What is not as it should be is kCorrupt.

// The longest text of a line of a program that is sent as one; longer ones come in pieces.
inline constexpr size_t kProgramLineMax = 64 << 10;
// The longest lines of ours: six bytes for each of a program's at worst; certificates and lists of thousands of tasks.
inline constexpr size_t kAgentLineMax = 1 << 20;
// The longest that a node says of itself: it is sent as text in JSON, which makes it three times as long at worst.
inline constexpr size_t kNodeStatusMax = 256 << 10;
inline constexpr size_t kFiguresMax = 256;  // of one sample
inline constexpr size_t kLauncherLineMax = 64 << 20;

// Agent to launcher: what happened to a task, or the answer to a question.
struct AgentLine {
  std::optional<TaskEvent> event;
  JsonValue answer;  // null if it is an event
};
std::string agent_line(const TaskEvent& event);
// What a node says of itself can be sent as it is: an object of JSON in UTF-8 that is not too long.
bool is_node_status(std::string_view text);
std::string answer_line(std::string_view json);
Result<AgentLine> parse_agent_line(std::string_view line);

// Launcher to agent: a word, a question (host_service.h), or only a sign of life.
struct LauncherLine {
  std::optional<LauncherWord> word;
  JsonValue question;  // null if it is none
};
std::string start_line(const TaskSpec& spec);
std::string view_line(const ClusterView& view);
std::string stop_line(TaskId task, bool at_once);
std::string question_line(std::string_view json);
std::string beat_line();
Result<LauncherLine> parse_launcher_line(std::string_view line);

}  // namespace pscloud

#include "launch/agent/agent_message.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/json.h"
#include "base/text.h"
#include "launch/json_bytes.h"

namespace pscloud {
namespace {

constexpr int64_t kCodeMax = 255;
constexpr int64_t kSignalMax = 64;
constexpr int64_t kNoticeSecondsMax = 86400;
constexpr int64_t kEndedAgoMaxUs = int64_t{86400} * 1000000;
// A folder is looked at every 150 ms (folder_watch.cc), and a disk of others takes its time; streams are faster.
constexpr std::chrono::milliseconds kHeardLate{300};
constexpr size_t kNoticeActionMax = 64;

// Bytes come from another machine: whatever they are, the error says that they were wrong.
Result<JsonValue> parse_object(std::string_view line) {
  auto value = JsonValue::parse(line);
  if (!value) return corrupt("{}", value.error().message);
  if (!value->is(JsonValue::Kind::kObject)) return corrupt("a line is no object");
  return *std::move(value);
}

Result<> read_arrived(const JsonValue& arrived, TaskEvent& event) {
  auto address = parse_address(arrived["address"].text());
  if (!address) return corrupt("'arrived' has no address: {}", address.error().message);
  event.kind = TaskEvent::Kind::kArrived;
  event.address = *std::move(address);
  event.host = arrived["host"].text();
  return {};
}

Result<> read_exited(const JsonValue& exited, TaskEvent& event) {
  const int64_t code = exited["code"].integer(-1), signal = exited["signal"].integer(-1);
  if (code < 0 || code > kCodeMax || signal < 0 || signal > kSignalMax)
    return corrupt("'exited' has no code or signal");
  event.kind = TaskEvent::Kind::kExited;
  event.code = static_cast<int>(code);
  event.signal = static_cast<int>(signal);
  event.ended_unix_us = std::max<int64_t>(exited["ended_unix_us"].integer(), 0);
  event.ended_ago = std::chrono::microseconds(std::clamp<int64_t>(exited["ended_ago_us"].integer(), 0, kEndedAgoMaxUs));
  event.heard_late = kHeardLate;
  return {};
}

Result<> read_notice(const JsonValue& notice, TaskEvent& event) {
  const int64_t left_s = notice["seconds"].integer(-1);
  if (left_s < 0 || left_s > kNoticeSecondsMax || notice["action"].text().size() > kNoticeActionMax) {
    return corrupt("'notice' has no time, or says too much");
  }
  event.kind = TaskEvent::Kind::kNotice;
  event.text = notice["action"].text();
  event.seconds = static_cast<int>(left_s);
  return {};
}

// Names and numbers are as they should be, or the line is wrong. What a node says must be JSON, and is kept as it came.
Result<> read_sample(const JsonValue& sample, TaskEvent& event) {
  event.kind = TaskEvent::Kind::kSample;
  const JsonValue& figures = sample["figures"];
  if (!figures.is(JsonValue::Kind::kObject) || figures.members().size() > kFiguresMax) {
    return corrupt("'sample' has no figures, or too many");
  }
  for (const auto& [name, value] : figures.members()) {
    const double number = value.number(std::numeric_limits<double>::quiet_NaN());
    if (!is_figure_name(name) || !std::isfinite(number)) return corrupt("'sample' has a figure that is none");
    event.figures.emplace_back(name, number);
  }
  event.text = sample["status"].text();
  if (!event.text.empty() && !is_node_status(event.text)) return corrupt("'sample' has a status that is none");
  return {};
}

Result<TaskEvent> read_event(const JsonValue& value) {
  TaskEvent event;
  auto task = parse_task_id(value["task"].text());
  if (!task) return corrupt("{}", task.error().message);
  event.task = *task;
  if (!value["arrived"].is(JsonValue::Kind::kNull)) {
    TRY(read_arrived(value["arrived"], event));
  } else if (value["running"].is(JsonValue::Kind::kObject)) {
    event.kind = TaskEvent::Kind::kRunning;
    event.pid = value["running"]["pid"].integer();
  } else if (auto line = read_bytes(value["line"])) {
    event.kind = TaskEvent::Kind::kLine;
    event.text = *std::move(line);
    event.is_stderr = value["stderr"].truth();
    event.continues = value["continues"].truth();
  } else if (!value["exited"].is(JsonValue::Kind::kNull)) {
    TRY(read_exited(value["exited"], event));
  } else if (value["notice"].is(JsonValue::Kind::kObject)) {
    TRY(read_notice(value["notice"], event));
  } else if (value["sample"].is(JsonValue::Kind::kObject)) {
    TRY(read_sample(value["sample"], event));
  } else if (value["lost"].is(JsonValue::Kind::kString)) {
    event.kind = TaskEvent::Kind::kLost;
    event.text = value["lost"].text();
  } else {
    return corrupt("nothing is said of {}", task->text());
  }
  return event;
}

Result<LauncherWord> read_word(const JsonValue& value) {
  LauncherWord word;
  if (value["start"].is(JsonValue::Kind::kObject)) {
    word.kind = LauncherWord::Kind::kStart;
    word.spec = TRY(parse_task_spec(value["start"]));
  } else if (value["view"].is(JsonValue::Kind::kObject)) {
    word.kind = LauncherWord::Kind::kView;
    word.view = TRY(parse_cluster_view(value["view"]));
  } else if (value["stop"].is(JsonValue::Kind::kObject)) {
    word.kind = LauncherWord::Kind::kStop;
    word.task = TRY(parse_task_id(value["task"].text()));
    word.at_once = value["stop"]["at_once"].truth();
  } else {
    return corrupt("a line with nothing to do");
  }
  return word;
}

}  // namespace

bool is_node_status(std::string_view text) {
  if (text.size() > kNodeStatusMax || !parse_object(text)) return false;
  while (!text.empty()) {
    const size_t known = utf8_character_bytes(text);
    if (known == 0) return false;
    text.remove_prefix(known);
  }
  return true;
}

std::string agent_line(const TaskEvent& event) {
  JsonWriter json;
  json.begin_object().field("task", event.task.text());
  switch (event.kind) {
    case TaskEvent::Kind::kArrived:
      json.key("arrived").begin_object().field("address", event.address.text()).field("host", event.host).end_object();
      break;
    case TaskEvent::Kind::kRunning: json.key("running").begin_object().field("pid", event.pid).end_object(); break;
    case TaskEvent::Kind::kLine:
      write_bytes(json.key("line"), event.text);
      if (event.is_stderr) json.field("stderr", true);
      if (event.continues) json.field("continues", true);
      break;
    case TaskEvent::Kind::kExited:
      json.key("exited").begin_object().field("code", event.code).field("signal", event.signal);
      if (event.ended_unix_us > 0) {
        json.field("ended_unix_us", event.ended_unix_us).field("ended_ago_us", event.ended_ago.count());
      }
      json.end_object();
      break;
    case TaskEvent::Kind::kLost: json.field("lost", event.text); break;
    case TaskEvent::Kind::kNotice:
      json.key("notice").begin_object().field("action", event.text).field("seconds", event.seconds).end_object();
      break;
    case TaskEvent::Kind::kSample:
      json.key("sample").begin_object().key("figures").begin_object();
      for (const auto& [name, value] : event.figures) json.field(name, value);
      json.end_object();
      if (!event.text.empty()) json.field("status", event.text);
      json.end_object();
      break;
    case TaskEvent::Kind::kPlaced: CHECK(false, "an agent is where its task is");
  }
  return json.end_object().text();
}

std::string answer_line(std::string_view json) { return fmt::format(R"({{"answer":{}}})", json); }

Result<AgentLine> parse_agent_line(std::string_view line) {
  const JsonValue value = TRY(parse_object(line));
  if (value["answer"].is(JsonValue::Kind::kObject)) return AgentLine{std::nullopt, value["answer"]};
  return AgentLine{TRY(read_event(value)), {}};
}

std::string start_line(const TaskSpec& spec) { return fmt::format(R"({{"start":{}}})", task_spec_json(spec)); }

std::string view_line(const ClusterView& view) { return fmt::format(R"({{"view":{}}})", cluster_view_json(view)); }

std::string stop_line(TaskId task, bool at_once) {
  JsonWriter json;
  json.begin_object().field("task", task.text()).key("stop").begin_object().field("at_once", at_once);
  return json.end_object().end_object().text();
}

std::string question_line(std::string_view json) { return fmt::format(R"({{"question":{}}})", json); }

std::string beat_line() { return R"({"beat":true})"; }

Result<LauncherLine> parse_launcher_line(std::string_view line) {
  const JsonValue value = TRY(parse_object(line));
  if (value["beat"].truth()) return LauncherLine{};
  if (value["question"].is(JsonValue::Kind::kObject)) return LauncherLine{std::nullopt, value["question"]};
  auto word = read_word(value);
  if (!word) return corrupt("{}", word.error().message);
  return LauncherLine{*std::move(word), {}};
}

}  // namespace pscloud

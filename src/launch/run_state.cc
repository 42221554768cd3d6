#include "launch/run_state.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/json.h"
#include "base/json_value.h"

namespace pscloud {
namespace {

constexpr std::array kStepNames = {"planned", "starting", "waiting", "running",     "stopping",
                                   "done",    "failed",   "missing", "interrupted", "lost"};

}  // namespace

double RunState::cost_usd(int64_t now_unix_ms) const {
  const int64_t until = ended_unix_ms > 0 ? ended_unix_ms : now_unix_ms;
  return cost_usd_offset + cost_usd_per_hour * static_cast<double>(std::max<int64_t>(0, until - began_unix_ms)) / 3.6e6;
}

void RunState::change_cost(double usd_per_hour, bool incomplete, int64_t now_unix_ms) {
  const double before = cost_usd(now_unix_ms);
  cost_usd_per_hour = usd_per_hour;
  cost_usd_offset += before - cost_usd(now_unix_ms);
  cost_incomplete = cost_incomplete || incomplete;  // what was not known before was spent all the same
}

int64_t unix_ms_now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

const char* step_name(RunState::Step step) { return kStepNames.at(static_cast<size_t>(step)); }

std::string run_state_json(const RunState& state) {
  JsonWriter json;
  json.begin_object().field("run", state.run).field("job", state.job).field("target", state.target);
  json.field("state", step_name(state.step)).field("message", state.message);
  if (state.root_cause) json.field("root_cause", state.root_cause->text());
  json.field("began_unix_ms", state.began_unix_ms).field("ended_unix_ms", state.ended_unix_ms);
  if (state.exit_code) json.field("exit_code", *state.exit_code);
  if (state.cost_usd_per_hour > 0) {
    json.field("cost_usd_per_hour", state.cost_usd_per_hour).field("cost_usd", state.cost_usd(unix_ms_now()));
  }
  if (state.cost_usd_offset != 0) json.field("cost_usd_offset", state.cost_usd_offset);
  if (state.cost_incomplete) json.field("cost_incomplete", true);
  if (!state.left.empty()) {
    json.key("left").begin_array();
    for (const std::string& line : state.left) json.value(line);
    json.end_array();
  }
  json.key("tasks").begin_array();
  for (const TaskStatus& task : state.tasks) {
    json.begin_object().field("task", task.id.text()).field("state", task_state_name(task.state));
    if (!task.host.empty()) json.field("host", task.host);
    if (!task.address.host.empty()) json.field("address", task.address.text());
    if (task.code) json.field("exit_code", *task.code);
    if (task.attempt > 0) json.field("attempt", task.attempt);
    json.end_object();
  }
  return json.end_array().end_object().text();
}

Result<RunState> parse_run_state(std::string_view text) {
  const JsonValue value = TRY(JsonValue::parse(text));
  RunState state;
  state.run = value["run"].text();
  state.job = value["job"].text();
  state.target = value["target"].text();
  const auto step = std::ranges::find(kStepNames, value["state"].text());
  if (state.run.empty() || step == kStepNames.end()) return corrupt("this is no state of a run");
  state.step = static_cast<RunState::Step>(step - kStepNames.begin());
  state.message = value["message"].text();
  if (const std::string& cause = value["root_cause"].text(); !cause.empty()) {
    state.root_cause = TRY(parse_task_id(cause));
  }
  state.began_unix_ms = value["began_unix_ms"].integer();
  state.ended_unix_ms = value["ended_unix_ms"].integer();
  state.cost_usd_per_hour = value["cost_usd_per_hour"].number();
  state.cost_usd_offset = value["cost_usd_offset"].number();
  state.cost_incomplete = value["cost_incomplete"].truth();
  if (const JsonValue& code = value["exit_code"]; code.is(JsonValue::Kind::kNumber)) {
    state.exit_code = static_cast<int>(code.integer());
  }
  for (const JsonValue& line : value["left"].items()) state.left.push_back(line.text());
  for (const JsonValue& each : value["tasks"].items()) {
    TaskStatus task;
    task.id = TRY(parse_task_id(each["task"].text()));
    task.state = TRY(parse_task_state(each["state"].text()));
    task.host = each["host"].text();
    if (const auto address = parse_address(each["address"].text())) task.address = *address;
    if (const JsonValue& code = each["exit_code"]; code.is(JsonValue::Kind::kNumber)) {
      task.code = static_cast<int>(code.integer());
    }
    task.attempt = static_cast<int>(each["attempt"].integer());
    state.tasks.push_back(std::move(task));
  }
  return state;
}

}  // namespace pscloud

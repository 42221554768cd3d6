#include <sys/stat.h>

#include "base/json.h"
#include "base/json_value.h"
#include "console/api_parts.h"
#include "console/reply.h"
#include "console/run_view.h"
#include "launch/run_report.h"

namespace pscloud {
namespace {

constexpr uint64_t kLastSamplesBytes = 256 << 10;
constexpr size_t kTasksSampledMax = 10000;
constexpr size_t kNamesSampledMax = 200;

uint64_t bytes_of(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

bool is_folder(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

RunView::RunView(const RunFolder& folder) : folder_(folder) {
  const auto plan = folder.read("plan.json");
  const auto parsed = plan ? JsonValue::parse(*plan) : Result<JsonValue>(plan.error());
  if (parsed) framework_ = (*parsed)["framework"].text();
}

void RunView::take(const Sample& sample) {
  auto task = latest_.find(sample.task);
  if (task == latest_.end()) {
    if (latest_.size() >= kTasksSampledMax) return;
    task = latest_.emplace(sample.task, Latest()).first;
  }
  Latest& latest = task->second;
  latest.unix_ms = std::max(latest.unix_ms, sample.unix_ms);
  const auto value = latest.values.find(sample.name);
  if (value != latest.values.end()) {
    value->second = sample.value;
  } else if (latest.values.size() < kNamesSampledMax) {
    latest.values.emplace(sample.name, sample.value);
  }
}

void RunView::take_last_samples() {
  const std::string path = folder_.path(kSampleFile);
  const uint64_t bytes = bytes_of(path);
  read_samples(path, bytes > kLastSamplesBytes ? bytes - kLastSamplesBytes : 0, bytes,
               [&](const Sample& sample) { take(sample); });
}

Result<std::string> RunView::json() const {
  const RunReport report = TRY(look_at_run(folder_));
  const RunState& state = report.state;
  JsonWriter json;
  json.begin_object().field("name", state.run).field("where", state.target).field("framework", framework_);
  json.field("state", report.word()).field("message", report.note()).key("root_cause");
  state.root_cause ? json.value(state.root_cause->text()) : json.null();
  json.field("since_unix_ms", state.began_unix_ms).key("ended_unix_ms");
  state.ended_unix_ms > 0 ? json.value(state.ended_unix_ms) : json.null();
  json.field("waiting_for", state.ended() ? "" : state.message);
  write_cost(json, "cost_usd", state.cost_usd(unix_ms_now()));
  write_cost(json, "cost_usd_per_hour", state.cost_usd_per_hour);
  json.field("cost_incomplete", state.cost_incomplete);
  if (const std::string steps = folder_.path("tensorboard"); is_folder(steps)) json.field("tensorboard", steps);
  json.key("tasks").begin_array();
  for (const TaskStatus& task : state.tasks) {
    const std::string name = task.id.text();
    json.begin_object().field("task", name).field("role", role_name(task.id.role)).field("index", task.id.index);
    json.field("host", task.host).field("address", task.address.host.empty() ? "" : task.address.text());
    json.field("state", report.lost && !task.ended() ? "unknown" : task_state_name(task.state)).key("code");
    task.code ? json.value(*task.code) : json.null();
    json.field("log_bytes", bytes_of(folder_.path("logs/" + name + ".log"))).key("sample");
    if (const auto latest = latest_.find(name); latest != latest_.end()) {
      json.begin_object().field("unix_ms", latest->second.unix_ms);
      for (const auto& [what, value] : latest->second.values) json.field(what, value);
      json.end_object();
    } else {
      json.null();
    }
    json.end_object();
  }
  return json.end_array().end_object().text();
}

HttpReply run_reply(const RunFolder& folder) {
  RunView view(folder);
  view.take_last_samples();
  auto json = view.json();
  return json ? json_reply(*std::move(json)) : error_reply(json.error());
}

HttpReply nodes_reply(const RunFolder& folder) {
  auto text = folder.read("nodes.json");
  return json_reply(text && JsonValue::parse(*text) ? *std::move(text) : "{}");
}

}  // namespace pscloud

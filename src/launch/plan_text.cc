#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/json_value.h"
#include "base/text.h"
#include "launch/json_bytes.h"
#include "launch/plan.h"

namespace pscloud {
namespace {

constexpr size_t kCommandColumns = 70;

// A word as a shell would read it back, for people.
std::string as_word(std::string_view word) {
  constexpr std::string_view kPlain = "_-+=./:,@%^";
  const auto plain = [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || kPlain.find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, plain)) return std::string(word);
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string command_text(const std::vector<std::string>& command) {
  if (command.empty()) return "(that of the image)";
  std::string text;
  for (const std::string& word : command) text += (text.empty() ? "" : " ") + as_word(word);
  text = escape_controls(text);
  if (text.size() > kCommandColumns) text = text.substr(0, kCommandColumns - 3) + "...";
  return text;
}

std::string resources_text(const Resources& resources) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (resources.cpus > 0) add(fmt::format("{} cpus", resources.cpus));
  if (resources.memory_bytes > 0) {
    add(fmt::format("{:.1f} GB", static_cast<double>(resources.memory_bytes) / (1 << 30)));
  }
  if (resources.gpus > 0) add(fmt::format("{} gpus", resources.gpus));
  return text.empty() ? "any" : text;
}

// "2 servers, 4 workers".
std::string counts_text(const Plan& plan) {
  std::vector<std::pair<TaskRole, int>> counts;
  for (const PlannedTask& task : plan.tasks) {
    const auto found = std::ranges::find(counts, task.spec.id.role, &std::pair<TaskRole, int>::first);
    if (found == counts.end()) {
      counts.emplace_back(task.spec.id.role, 1);
    } else {
      ++found->second;
    }
  }
  std::vector<std::string> texts;
  for (const auto& [role, count] : counts) {
    texts.push_back(fmt::format("{} {}{}", count, role_name(role), count == 1 ? "" : "s"));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

Result<PlannedTask> parse_planned_task(const JsonValue& value) {
  PlannedTask task;
  task.spec.id = TRY(parse_task_id(value["task"].text()));
  task.spec.attempt = static_cast<int>(value["attempt"].integer());
  for (const JsonValue& word : value["command"].items()) task.spec.command.push_back(read_bytes(word).value_or(""));
  for (const auto& [name, text] : value["environment"].members()) {
    task.spec.environment.emplace_back(name, read_bytes(text).value_or(""));
  }
  for (const JsonValue& file : value["secret_files"].items()) {
    task.spec.files.push_back({.name = file.text(), .content = {}, .variable = {}, .name_folder = false});
  }
  task.spec.folder = value["folder"].text();
  task.spec.advertise = value["advertise"].text();
  task.host = value["host"].text();
  task.image = value["image"].text();
  task.resources.cpus = static_cast<int>(value["cpus"].integer());
  task.resources.memory_bytes = static_cast<uint64_t>(value["memory_bytes"].integer());
  task.resources.gpus = static_cast<int>(value["gpus"].integer());
  task.ends_job = value["ends_job"].truth();
  return task;
}

void write_planned_task(JsonWriter& json, const PlannedTask& task) {
  json.begin_object().field("task", task.spec.id.text()).field("attempt", task.spec.attempt);
  json.field("host", task.host).field("image", task.image).field("ends_job", task.ends_job);
  json.field("cpus", task.resources.cpus).field("memory_bytes", task.resources.memory_bytes);
  json.field("gpus", task.resources.gpus).key("command").begin_array();
  for (const std::string& word : task.spec.command) write_bytes(json, word);
  json.end_array().key("environment").begin_object();
  for (const auto& [name, value] : task.spec.environment) write_bytes(json.key(name), value);
  json.end_object().key("secret_files").begin_array();
  for (const TaskFile& file : task.spec.files) json.value(file.name);
  json.end_array().field("folder", task.spec.folder).field("advertise", task.spec.advertise).end_object();
}

}  // namespace

std::string plan_summary(const Plan& plan) {
  return fmt::format("run {} on {}: {}", plan.run, plan.target, counts_text(plan));
}

std::string plan_text(const Plan& plan) {
  std::string text = fmt::format("{} ({})\n", plan_summary(plan), framework_name(plan.framework));
  size_t where_width = 5;
  for (const PlannedTask& task : plan.tasks) where_width = std::max(where_width, task.host.size());
  text += fmt::format("{:<14} {:<{}}  {:<20} {}\n", "TASK", "WHERE", where_width, "RESOURCES", "COMMAND");
  for (const PlannedTask& task : plan.tasks) {
    std::string command = command_text(task.spec.command);
    if (!task.image.empty()) command = fmt::format("{} in {}", command, task.image);
    text += fmt::format("{:<14} {:<{}}  {:<20} {}\n", task.spec.id.text(), task.host.empty() ? "any" : task.host,
                        where_width, resources_text(task.resources), command);
  }
  for (const std::string& file : plan.files) text += fmt::format("copy {}\n", escape_controls(file));
  if (plan.cost_usd_per_hour > 0) {
    text +=
        fmt::format("costs {}{:.2f} USD an hour\n", plan.cost_incomplete ? "more than " : "", plan.cost_usd_per_hour);
  } else if (plan.cost_incomplete) {
    text += "what it costs is not known\n";
  }
  text += fmt::format("all must have arrived within {} s", plan.arrive_timeout_ms / 1000);
  if (plan.workers_min > 0) text += fmt::format(", of the workers {}", plan.workers_min);
  text += fmt::format("; to stop takes {} s at most", plan.stop_grace_ms / 1000);
  if (plan.run_timeout_ms > 0) text += fmt::format("; the whole must end within {} s", plan.run_timeout_ms / 1000);
  return text + "\n";
}

std::string plan_json(const Plan& plan) {
  JsonWriter json;
  json.begin_object().field("job", plan.job).field("run", plan.run).field("target", plan.target);
  json.field("framework", framework_name(plan.framework)).key("files").begin_array();
  for (const std::string& file : plan.files) json.value(file);
  json.end_array().field("workers_min", plan.workers_min).field("worker_may_fail", plan.worker_may_fail);
  json.field("late_workers", plan.late_workers);
  json.field("arrive_timeout_ms", plan.arrive_timeout_ms).field("stop_grace_ms", plan.stop_grace_ms);
  json.field("run_timeout_ms", plan.run_timeout_ms);
  if (plan.cost_usd_per_hour > 0) json.field("cost_usd_per_hour", plan.cost_usd_per_hour);
  if (plan.cost_incomplete) json.field("cost_incomplete", true);
  json.key("tasks").begin_array();
  for (const PlannedTask& task : plan.tasks) write_planned_task(json, task);
  return json.end_array().end_object().text();
}

Result<Plan> parse_plan(std::string_view text) {
  const JsonValue value = TRY(JsonValue::parse(text));
  Plan plan;
  plan.job = value["job"].text();
  plan.run = value["run"].text();
  plan.target = value["target"].text();
  plan.framework = TRY(parse_framework(value["framework"].text()));
  for (const JsonValue& file : value["files"].items()) plan.files.push_back(file.text());
  plan.workers_min = static_cast<int>(value["workers_min"].integer());
  plan.worker_may_fail = value["worker_may_fail"].truth();
  plan.late_workers = value["late_workers"].truth();
  plan.arrive_timeout_ms = static_cast<int>(value["arrive_timeout_ms"].integer());
  plan.stop_grace_ms = static_cast<int>(value["stop_grace_ms"].integer());
  plan.run_timeout_ms = value["run_timeout_ms"].integer();
  plan.cost_usd_per_hour = value["cost_usd_per_hour"].number();
  plan.cost_incomplete = value["cost_incomplete"].truth();
  for (const JsonValue& each : value["tasks"].items()) {
    PlannedTask task = TRY(parse_planned_task(each));
    task.spec.job = plan.job;
    task.spec.run = plan.run;
    task.spec.framework = plan.framework;
    task.spec.stop_grace_ms = plan.stop_grace_ms;
    task.spec.arrive_timeout_ms = plan.arrive_timeout_ms;
    plan.tasks.push_back(std::move(task));
  }
  if (plan.job.empty() || plan.tasks.empty()) return corrupt("this is no plan of a run");
  return plan;
}

}  // namespace pscloud

#include "launch/job_wire.h"

#include "base/json.h"
#include "launch/json_bytes.h"

namespace pscloud {
namespace {

void write_environment(JsonWriter& json, const Variables& variables) {
  json.key("environment").begin_object();
  for (const auto& [name, value] : variables) write_bytes(json.key(name), value);
  json.end_object();
}

void write_secrets(JsonWriter& json, const std::vector<TaskFile>& secrets) {
  json.key("secrets").begin_array();
  for (const TaskFile& file : secrets) {
    json.begin_object().field("name", file.name).field("variable", file.variable);
    write_bytes(json.field("name_folder", file.name_folder).key("content"), file.content);
    json.end_object();
  }
  json.end_array();
}

void write_role(JsonWriter& json, const RoleSpec& role) {
  json.begin_object().field("role", role_name(role.role)).field("count", role.count).field("image", role.image);
  json.field("port", int{role.port}).field("cpus", role.resources.cpus).field("gpus", role.resources.gpus);
  json.field("memory_bytes", role.resources.memory_bytes).key("commands").begin_array();
  for (const auto& command : role.commands) {
    json.begin_array();
    for (const std::string& word : command) write_bytes(json, word);
    json.end_array();
  }
  json.end_array();
  write_environment(json, role.environment);
  write_secrets(json, role.secrets);
  json.end_object();
}

Variables read_variables(const JsonValue& value) {
  Variables variables;
  for (const auto& [name, text] : value["environment"].members()) {
    variables.emplace_back(name, read_bytes(text).value_or(""));
  }
  return variables;
}

std::vector<TaskFile> read_secrets(const JsonValue& value) {
  std::vector<TaskFile> secrets;
  for (const JsonValue& file : value["secrets"].items()) {
    secrets.push_back({.name = file["name"].text(),
                       .content = read_bytes(file["content"]).value_or(""),
                       .variable = file["variable"].text(),
                       .name_folder = file["name_folder"].truth()});
  }
  return secrets;
}

Result<RoleSpec> read_role_spec(const JsonValue& value) {
  RoleSpec role;
  role.role = TRY(parse_role(value["role"].text()));
  role.count = static_cast<int>(value["count"].integer());
  role.image = value["image"].text();
  role.port = static_cast<uint16_t>(value["port"].integer());
  role.resources.cpus = static_cast<int>(value["cpus"].integer());
  role.resources.gpus = static_cast<int>(value["gpus"].integer());
  role.resources.memory_bytes = static_cast<uint64_t>(value["memory_bytes"].integer());
  for (const JsonValue& command : value["commands"].items()) {
    role.commands.emplace_back();
    for (const JsonValue& word : command.items()) role.commands.back().push_back(read_bytes(word).value_or(""));
  }
  role.environment = read_variables(value);
  role.secrets = read_secrets(value);
  return role;
}

}  // namespace

std::string job_wire_json(const Job& job) {
  JsonWriter json;
  json.begin_object().field("run", job.run).field("framework", framework_name(job.framework)).key("roles");
  json.begin_array();
  for (const RoleSpec& role : job.roles) write_role(json, role);
  json.end_array();
  write_environment(json, job.environment);
  write_secrets(json, job.secrets);
  json.key("files").begin_array();
  for (const std::string& file : job.files) write_bytes(json, file);
  json.end_array().field("workers_min", job.workers_min).field("worker_may_fail", job.worker_may_fail);
  json.field("late_workers", job.late_workers);
  json.field("arrive_timeout_ms", job.arrive_timeout_ms).field("stop_grace_ms", job.stop_grace_ms);
  return json.field("run_timeout_ms", job.run_timeout_ms).end_object().text();
}

Result<Job> parse_job_wire(const JsonValue& value) {
  Job job;
  job.run = value["run"].text();
  TRY(check_run_name(job.run));
  job.framework = TRY(parse_framework(value["framework"].text()));
  for (const JsonValue& role : value["roles"].items()) job.roles.push_back(TRY(read_role_spec(role)));
  job.environment = read_variables(value);
  job.secrets = read_secrets(value);
  for (const JsonValue& file : value["files"].items()) job.files.push_back(read_bytes(file).value_or(""));
  job.workers_min = static_cast<int>(value["workers_min"].integer());
  job.worker_may_fail = value["worker_may_fail"].truth();
  job.late_workers = value["late_workers"].truth();
  job.arrive_timeout_ms = static_cast<int>(value["arrive_timeout_ms"].integer());
  job.stop_grace_ms = static_cast<int>(value["stop_grace_ms"].integer());
  job.run_timeout_ms = value["run_timeout_ms"].integer();
  return job;
}

}  // namespace pscloud

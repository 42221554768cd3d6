#include "launch/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/json.h"
#include "base/json_value.h"
#include "base/text.h"
#include "launch/json_bytes.h"

namespace pscloud {
namespace {

// In the order of the enumerations.
constexpr std::array kRoleNames = {"scheduler", "server", "chief", "worker", "evaluator"};
constexpr std::array kFrameworkNames = {"pscloud", "tensorflow", "paddle", "paddle2018", "dmlc", "poseidon", "torch"};

template <class T, size_t kCount>
Result<T> parse_name(std::string_view what, std::string_view name, const std::array<const char*, kCount>& names) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return invalid("'{}' is no {}: one of {}", name, what, fmt::join(names, ", "));
  return static_cast<T>(found - names.begin());
}

// A field that must be there. Missing and of another kind is the same to the reader.
Result<const JsonValue*> field(const JsonValue& object, std::string_view name, JsonValue::Kind kind) {
  const JsonValue& value = object[name];
  if (!value.is(kind)) return corrupt("'{}' must be {}", name, json_kind_name(kind));
  return &value;
}

Result<std::string> text_field(const JsonValue& object, std::string_view name) {
  return TRY(field(object, name, JsonValue::Kind::kString))->text();
}

Result<std::string> bytes_field(const JsonValue& object, std::string_view name) {
  auto bytes = read_bytes(object[name]);
  if (!bytes) return corrupt("'{}' must be a string, or bytes", name);
  return *std::move(bytes);
}

Result<int> number_field(const JsonValue& object, std::string_view name) {
  const int64_t number = TRY(field(object, name, JsonValue::Kind::kNumber))->integer(-1);
  if (number < 0 || number > std::numeric_limits<int>::max()) return corrupt("'{}' is out of range", name);
  return static_cast<int>(number);
}

Result<Variables> parse_variables(const JsonValue& object) {
  Variables variables;
  for (const auto& [name, value] : object.members()) {
    auto bytes = read_bytes(value);
    if (!bytes) return corrupt("the variable '{}' must be a string, or bytes", name);
    variables.emplace_back(name, *std::move(bytes));
  }
  return variables;
}

Result<TaskFile> parse_task_file(const JsonValue& value) {
  TaskFile file;
  file.name = TRY(text_field(value, "name"));
  file.content = TRY(bytes_field(value, "content"));
  file.variable = value["variable"].text();
  file.name_folder = value["name_folder"].truth();
  // It is made in the task's folder, and nowhere else.
  if (file.name.empty() || file.name.front() == '/' || file.name.find("..") != std::string::npos) {
    return corrupt("'{}' is no name of a file of a task", file.name);
  }
  return file;
}

}  // namespace

const char* role_name(TaskRole role) { return kRoleNames.at(static_cast<size_t>(role)); }
Result<TaskRole> parse_role(std::string_view name) { return parse_name<TaskRole>("role", name, kRoleNames); }

const char* framework_name(Framework framework) { return kFrameworkNames.at(static_cast<size_t>(framework)); }
Result<Framework> parse_framework(std::string_view name) {
  return parse_name<Framework>("framework", name, kFrameworkNames);
}

void put_variable(Variables& variables, const std::string& name, const std::string& value) {
  const auto found = std::ranges::find(variables, name, &Variables::value_type::first);
  if (found == variables.end()) {
    variables.emplace_back(name, value);
  } else {
    found->second = value;
  }
}

std::string TaskId::text() const { return fmt::format("{}-{}", role_name(role), index); }

Result<TaskId> parse_task_id(std::string_view text) {
  const size_t dash = text.rfind('-');
  TaskId id;
  const auto role = parse_role(text.substr(0, dash));
  if (dash == std::string_view::npos || !role ||
      !parse_number(text.substr(dash + 1), 0, std::numeric_limits<int>::max(), id.index)) {
    return invalid("'{}' is no task: 'worker-0', say", text);
  }
  id.role = *role;
  return id;
}

std::string task_spec_json(const TaskSpec& spec) {
  JsonWriter json;
  json.begin_object();
  json.field("job", spec.job).field("run", spec.run).field("task", spec.id.text()).field("attempt", spec.attempt);
  json.field("framework", framework_name(spec.framework));
  json.key("command").begin_array();
  for (const std::string& word : spec.command) write_bytes(json, word);
  json.end_array().key("environment").begin_object();
  for (const auto& [name, value] : spec.environment) write_bytes(json.key(name), value);
  json.end_object().key("files").begin_array();
  for (const TaskFile& file : spec.files) {
    json.begin_object().field("name", file.name).field("variable", file.variable);
    write_bytes(json.field("name_folder", file.name_folder).key("content"), file.content);
    json.end_object();
  }
  write_bytes(json.end_array().key("folder"), spec.folder);
  write_bytes(json.key("private_folder"), spec.private_folder);
  json.field("port", int{spec.port}).field("advertise", spec.advertise);
  json.field("stop_grace_ms", spec.stop_grace_ms).field("arrive_timeout_ms", spec.arrive_timeout_ms);
  json.field("spot", spec.spot);
  return json.end_object().text();
}

Result<TaskSpec> parse_task_spec(std::string_view json) { return parse_task_spec(TRY(JsonValue::parse(json))); }

Result<TaskSpec> parse_task_spec(const JsonValue& value) {
  TaskSpec spec;
  spec.job = TRY(text_field(value, "job"));
  spec.run = TRY(text_field(value, "run"));
  spec.id = TRY(parse_task_id(TRY(text_field(value, "task"))));
  spec.attempt = TRY(number_field(value, "attempt"));
  spec.framework = TRY(parse_framework(TRY(text_field(value, "framework"))));
  for (const JsonValue& word : TRY(field(value, "command", JsonValue::Kind::kArray))->items()) {
    auto bytes = read_bytes(word);
    if (!bytes) return corrupt("a word of 'command' is neither a string nor bytes");
    spec.command.push_back(*std::move(bytes));
  }
  spec.environment = TRY(parse_variables(*TRY(field(value, "environment", JsonValue::Kind::kObject))));
  for (const JsonValue& file : TRY(field(value, "files", JsonValue::Kind::kArray))->items()) {
    spec.files.push_back(TRY(parse_task_file(file)));
  }
  spec.folder = TRY(bytes_field(value, "folder"));
  spec.private_folder = TRY(bytes_field(value, "private_folder"));
  const int port = TRY(number_field(value, "port"));
  if (port > std::numeric_limits<uint16_t>::max()) return corrupt("'port' is out of range");
  spec.port = static_cast<uint16_t>(port);
  spec.advertise = TRY(text_field(value, "advertise"));
  spec.stop_grace_ms = TRY(number_field(value, "stop_grace_ms"));
  spec.arrive_timeout_ms = TRY(number_field(value, "arrive_timeout_ms"));
  spec.spot = value["spot"].truth();
  return spec;
}

std::vector<Address> ClusterView::addresses(TaskRole role) const {
  std::vector<Address> found;
  for (const TaskAddress& task : tasks) {
    if (task.id.role == role) found.push_back(task.address);
  }
  return found;
}

const Address* ClusterView::find(TaskId id) const {
  const auto found = std::ranges::find(tasks, id, &TaskAddress::id);
  return found == tasks.end() ? nullptr : &found->address;
}

std::string cluster_view_json(const ClusterView& view) {
  JsonWriter json;
  json.begin_object().field("job", view.job).key("tasks").begin_object();
  for (const TaskAddress& task : view.tasks) json.field(task.id.text(), task.address.text());
  return json.end_object().end_object().text();
}

Result<ClusterView> parse_cluster_view(std::string_view json) {
  return parse_cluster_view(TRY(JsonValue::parse(json)));
}

Result<ClusterView> parse_cluster_view(const JsonValue& value) {
  ClusterView view;
  view.job = TRY(text_field(value, "job"));
  for (const auto& [name, address] : TRY(field(value, "tasks", JsonValue::Kind::kObject))->members()) {
    view.tasks.push_back({TRY(parse_task_id(name)), TRY(parse_address(address.text()))});
  }
  std::ranges::sort(view.tasks, {}, &TaskAddress::id);
  return view;
}

}  // namespace pscloud

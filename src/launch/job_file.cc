#include "launch/job_file.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "io/file_store.h"
#include "launch/json_fields.h"

namespace pscloud {
namespace {

constexpr uint64_t kJobFileBytesMax = 16 << 20;
constexpr int kCountMax = 10000;
constexpr int kSecondsMax = 2000000;  // so that milliseconds fit

Result<std::vector<std::string>> read_command(const JsonFields& fields, const JsonValue& value) {
  std::vector<std::string> command;
  for (const JsonValue& word : value.items()) {
    if (!word.is(JsonValue::Kind::kString)) return fields.wrong(word, "a word of a command must be a string");
    command.push_back(word.text());
  }
  if (command.empty()) return fields.wrong(value, "a command is a list of words: [\"python3\", \"train.py\"]");
  return command;
}

Result<RoleSpec> read_role(TaskRole role, const JsonValue& value, std::string_view file) {
  JsonFields fields = TRY(JsonFields::of(value, file, fmt::format("the role {}", role_name(role))));
  RoleSpec spec;
  spec.role = role;
  TRY(fields.read("count", spec.count, 0, kCountMax));
  TRY(fields.read("image", spec.image));
  TRY(fields.read("environment", spec.environment));
  if (fields.has("command")) spec.commands.push_back(TRY(read_command(fields, fields.value("command"))));
  if (fields.has("commands")) {
    if (!spec.commands.empty()) return fields.wrong(value, "it has both 'command' and 'commands'");
    for (const JsonValue& each : fields.value("commands").items()) {
      spec.commands.push_back(TRY(read_command(fields, each)));
    }
  }
  if (fields.has("resources")) spec.resources = TRY(parse_resources(fields.value("resources"), file));
  TRY(fields.finish());
  return spec;
}

Result<> read_seconds(JsonFields& fields, std::string_view name, auto& ms) {
  int seconds = static_cast<int>(ms / 1000);
  TRY(fields.read(name, seconds, 0, kSecondsMax));
  ms = seconds * 1000;
  return {};
}

}  // namespace

Result<JobFile> parse_job_file(std::string_view text, std::string_view file) {
  auto parsed = JsonValue::parse(text);
  if (!parsed) return invalid("{}:{}", file, parsed.error().message);
  JsonFields fields = TRY(JsonFields::of(*parsed, file, "a job file"));
  JobFile result;
  Job& job = result.job;
  TRY(fields.read("name", job.run));
  TRY(fields.read("on", result.on));
  std::string framework = framework_name(job.framework);
  TRY(fields.read("framework", framework));
  const auto known = parse_framework(framework);
  if (!known) return fields.wrong(fields.value("framework"), "{}", known.error().message);
  job.framework = *known;
  TRY(fields.read("environment", job.environment));
  TRY(fields.read("files", job.files));
  TRY(fields.read("workers_min", job.workers_min, 0, kCountMax));
  TRY(fields.read("worker_may_fail", job.worker_may_fail));
  TRY(fields.read("late_workers", job.late_workers));
  TRY(read_seconds(fields, "arrive_timeout_s", job.arrive_timeout_ms));
  TRY(read_seconds(fields, "stop_grace_s", job.stop_grace_ms));
  TRY(read_seconds(fields, "timeout_s", job.run_timeout_ms));
  std::vector<std::vector<std::string>> commands;
  if (fields.has("command")) commands.push_back(TRY(read_command(fields, fields.value("command"))));
  if (const JsonValue& roles = fields.value("roles"); !roles.is(JsonValue::Kind::kNull)) {
    const JsonFields by_role = TRY(JsonFields::of(roles, file, "'roles'"));
    for (const auto& [name, value] : roles.members()) {
      const auto role = parse_role(name);
      if (!role) return by_role.wrong(value, "{}", role.error().message);
      job.roles.push_back(TRY(read_role(*role, value, file)));
    }
  }
  TRY(fields.finish());
  for (RoleSpec& role : job.roles) {
    if (role.commands.empty()) role.commands = commands;
  }
  return result;
}

Result<JobFile> read_job_file(const std::string& path) {
  const auto store = make_local_store();
  const auto input = TRY(store->open(path, {}));
  const auto text = read_all(*input, kJobFileBytesMax);
  if (!text) return invalid("{}: {}", path, text.error().message);
  return parse_job_file(*text, path);
}

RoleSpec& role_of(Job& job, TaskRole role) {
  const auto found = std::ranges::find(job.roles, role, &RoleSpec::role);
  if (found != job.roles.end()) return *found;
  RoleSpec& made = job.roles.emplace_back();
  made.role = role;
  made.count = 0;
  return made;
}

std::string run_name_of(const std::vector<std::string>& command) {
  // Of an interpreter, what it runs tells more.
  constexpr std::array kInterpreters = {"python", "python3", "bash", "sh", "env", "perl", "ruby", "node"};
  std::string name;
  for (const std::string& word : command) {
    if (word.empty() || word.front() == '-') break;
    std::string base = word.substr(word.rfind('/') + 1);
    name.clear();
    for (const char c : base.substr(0, base.find('.'))) {
      const char small = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      const bool fits = (small >= 'a' && small <= 'z') || (small >= '0' && small <= '9');
      if (fits || (!name.empty() && name.back() != '-')) name += fits ? small : '-';
    }
    if (std::ranges::find(kInterpreters, base) == kInterpreters.end()) break;
  }
  while (!name.empty() && (name.front() == '-' || (name.front() >= '0' && name.front() <= '9'))) name.erase(0, 1);
  name.resize(std::min<size_t>(name.size(), 30));
  while (name.ends_with('-')) name.pop_back();
  return name.empty() ? "run" : name;
}

}  // namespace pscloud

#include "cli/run/job_flags.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include "launch/json_fields.h"

namespace pscloud {
namespace {

// "NAME=value", or "NAME" for the value that it has here.
Result<std::pair<std::string, std::string>> read_variable(const std::string& text, const char* flag) {
  const std::string name = text.substr(0, text.find('='));
  if (!is_variable_name(name)) return invalid("{} {}: '{}' is no name of a variable", flag, text, name);
  if (name.size() < text.size()) return std::pair(name, text.substr(name.size() + 1));
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return invalid("{} {}: it is not set in this environment", flag, name);
  return std::pair(name, std::string(value));
}

Result<> add_secrets(const std::vector<std::string>& names, Job& job) {
  for (const std::string& name : names) {
    if (name.find('=') != std::string::npos) {
      return invalid(
          "--secret {}=...: give the name only, and the value in the environment: everybody on this machine "
          "can read a command line",
          name.substr(0, name.find('=')));
    }
    const auto [variable, value] = TRY(read_variable(name, "--secret"));
    job.secrets.push_back({.name = "secrets/" + variable, .content = value, .variable = variable + "_FILE"});
  }
  return {};
}

void set_ms(double seconds, auto& ms) {
  if (seconds >= 0) ms = static_cast<std::remove_reference_t<decltype(ms)>>(seconds * 1000);
}

}  // namespace

void add_job_flags(CLI::App& verb, JobFlags& flags, const char* group) {
  const auto add = [&](const char* name, auto& value, const char* help, const char* type) {
    verb.add_option(name, value, help)->type_name(type)->allow_extra_args(false)->group(group);
  };
  add("--name", flags.name, "of the run [after what it runs]", "RUN");
  add("--env", flags.environment, "a variable of each task; without value, as it is here", "NAME[=VALUE]");
  add("--secret", flags.secrets, "a variable of here, as a file that NAME_FILE names", "NAME");
  add("--file", flags.files, "copied to each machine", "PATH");
  add("--image", flags.image, "of containers", "IMAGE");
  add("--workers-min", flags.workers_min, "begin when so many have come [all]", "N");
  add("--arrive-timeout", flags.arrive_timeout_s, "for all to arrive [300]", "SECONDS");
  add("--stop-grace", flags.stop_grace_s, "from SIGTERM to SIGKILL [30]", "SECONDS");
  add("--timeout", flags.timeout_s, "for the whole job [none]", "SECONDS");
}

Result<> apply_job_flags(const JobFlags& flags, Job& job) {
  for (const std::string& text : flags.environment) job.environment.push_back(TRY(read_variable(text, "--env")));
  TRY(add_secrets(flags.secrets, job));
  job.files.insert(job.files.end(), flags.files.begin(), flags.files.end());
  if (!flags.image.empty()) {
    for (RoleSpec& role : job.roles) role.image = flags.image;
  }
  if (flags.workers_min >= 0) job.workers_min = flags.workers_min;
  set_ms(flags.arrive_timeout_s, job.arrive_timeout_ms);
  set_ms(flags.stop_grace_s, job.stop_grace_ms);
  set_ms(flags.timeout_s, job.run_timeout_ms);
  if (!flags.name.empty()) job.run = flags.name;
  return {};
}

}  // namespace pscloud

#include "launch/queue/condor_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace pscloud {
namespace {

constexpr uint64_t kMegabyteBytes = uint64_t{1} << 20;

// A value of the submit file that is taken as it stands, but for $(macros).
Result<std::string> condor_value(std::string_view what, std::string_view value) {
  if (value.find_first_of("\n\r") != std::string_view::npos || value.ends_with('\\')) {
    return invalid("HTCondor cannot take the {} '{}': it may have no line's end, and no '\\' at its end", what, value);
  }
  std::string text;
  for (const char letter : value) text += letter == '$' ? std::string("$(DOLLAR)") : std::string(1, letter);
  return text;
}

// Of a list of files: commas and spaces part them.
Result<std::string> condor_file(std::string_view path) {
  if (path.find_first_of(", \t\"") != std::string_view::npos) {
    return invalid("HTCondor cannot copy '{}': a path may have no comma, space or quote", path);
  }
  return condor_value("path", path);
}

bool same_shape(const PlannedTask& a, const PlannedTask& b) {
  return a.spec.id.role == b.spec.id.role && a.image == b.image && a.resources.cpus == b.resources.cpus &&
         a.resources.memory_bytes == b.resources.memory_bytes && a.resources.gpus == b.resources.gpus;
}

bool any_asks(const Plan& plan, bool (*asks)(const Resources&)) {
  return std::ranges::any_of(plan.tasks, [asks](const PlannedTask& task) { return asks(task.resources); });
}

// HTCondor's own default, by its manual. What an earlier group has asked for holds on, even for one that leaves it
// empty.
constexpr const char* kDefaultMemory = "ifthenelse(MemoryUsage =!= undefined, MemoryUsage, 128)";

Result<std::string> shape_lines(const Plan& plan, const PlannedTask& task) {
  std::string text;
  if (task.image.empty()) {
    text += "universe = vanilla\n";
  } else {
    // By a network of its own nobody would reach it at the address that it tells.
    text += fmt::format("universe = docker\ndocker_image = {}\ndocker_network_type = host\n",
                        TRY(condor_value("image", task.image)));
  }
  text += fmt::format("request_cpus = {}\n", std::max(task.resources.cpus, 1));
  if (any_asks(plan, [](const Resources& wanted) { return wanted.memory_bytes > 0; })) {
    const uint64_t megabytes = (task.resources.memory_bytes + kMegabyteBytes - 1) / kMegabyteBytes;
    text += fmt::format("request_memory = {}\n", megabytes > 0 ? fmt::to_string(megabytes) : kDefaultMemory);
  }
  if (any_asks(plan, [](const Resources& wanted) { return wanted.gpus > 0; })) {
    text += fmt::format("request_gpus = {}\n", task.resources.gpus);
  }
  return text;
}

}  // namespace

std::string condor_batch_name(const Plan& plan) { return fmt::format("pscloud-{}-{}", plan.run, plan.job); }

Result<std::string> condor_arguments(const std::vector<std::string>& arguments) {
  std::string text;
  for (const std::string& argument : arguments) {
    std::string quoted;
    for (const char letter : TRY(condor_value("argument", argument))) {
      quoted += letter == '\'' ? "''" : letter == '"' ? "\"\"" : std::string(1, letter);
    }
    text += fmt::format("{}'{}'", text.empty() ? "" : " ", quoted);
  }
  return "\"" + text + "\"";
}

Result<std::string> condor_submit_file(const Plan& plan, const CondorSubmission& submission) {
  const std::string folder = TRY(condor_value("folder", submission.folder));
  std::string arguments = TRY(condor_arguments(submission.agent));
  arguments.insert(arguments.size() - 1, " --number $(Process)");

  std::string inputs;
  for (const std::string& file : submission.files) inputs += TRY(condor_file(file)) + ", ";
  if (!submission.specs.empty()) inputs += TRY(condor_file(submission.specs)) + "$(Process).json";
  if (inputs.ends_with(", ")) inputs.resize(inputs.size() - 2);

  std::string text;
  text += fmt::format("batch_name = {}\n", condor_batch_name(plan));
  text += fmt::format("executable = {}\n", TRY(condor_value("program", submission.program)));
  text += fmt::format("transfer_executable = {}\n", submission.transfer_program);
  text += fmt::format("arguments = {}\n", arguments);
  // A shared disk is no matter of HTCondor's domains: what it must bring it brings, and nothing goes back but output.
  text += "should_transfer_files = YES\nwhen_to_transfer_output = ON_EXIT\ntransfer_output_files = \"\"\n";
  if (!inputs.empty()) text += fmt::format("transfer_input_files = {}\n", inputs);
  text += fmt::format("log = {}/condor.log\noutput = {}/$(Process).out\nerror = {}/$(Process).err\n", folder, folder,
                      folder);
  text += "notification = never\ngetenv = false\nkill_sig = SIGTERM\n";
  text += fmt::format("job_lease_duration = {}\n", submission.lease_s);
  // A task that has lost its machine is not begun a second time: the job has failed by then, and its folder is gone.
  std::string remove = "NumJobStarts > 1 || (NumJobStarts > 0 && JobStatus == 1) || JobStatus == 5";
  if (submission.time_max_s > 0) {
    remove += fmt::format(" || (JobStatus == 2 && time() - EnteredCurrentStatus > {})", submission.time_max_s);
  }
  text += fmt::format("periodic_remove = {}\n", remove);
  if (!submission.requirements.empty()) {
    text += fmt::format("requirements = {}\n", TRY(condor_value("requirements", submission.requirements)));
  }
  if (!submission.accounting_group.empty()) {
    text += fmt::format("accounting_group = {}\n", TRY(condor_value("group", submission.accounting_group)));
  }

  for (size_t first = 0; first < plan.tasks.size();) {
    size_t end = first + 1;
    while (end < plan.tasks.size() && same_shape(plan.tasks[first], plan.tasks[end])) ++end;
    text += fmt::format("\n# {}\n", role_name(plan.tasks[first].spec.id.role));
    text += TRY(shape_lines(plan, plan.tasks[first]));
    text += fmt::format("queue {}\n", end - first);
    first = end;
  }
  return text;
}

}  // namespace pscloud

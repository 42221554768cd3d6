#include "cli/stop_process.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <cstdlib>

#include "base/fd.h"
#include "launch/process/own_program.h"
#include "launch/process/processes.h"
#include "launch/process/spawn.h"

namespace pscloud {
namespace {

constexpr size_t kStopProcessesMax = 32;

}  // namespace

void StopProcesses::forget_ended() {
  std::erase_if(processes_, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
}

Result<> StopProcesses::begin(const std::string& run, const std::string& run_folder) {
  MutexLock lock(mutex_);
  forget_ended();
  if (processes_.size() >= kStopProcessesMax) return unavailable("too many runs are being cleaned up; try again");
  const Fd log(::open((run_folder + "/launcher.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  SpawnSpec spec;
  spec.arguments = own_program();
  spec.arguments.insert(spec.arguments.end(), {"stop", run});
  spec.environment = inherited_environment();
  spec.program =
      find_program(spec.arguments.front(), variable_of(spec.environment, "PATH")).value_or(spec.arguments.front());
  if (const char* home = std::getenv("PSCLOUD_HOME")) set_variable(spec.environment, "PSCLOUD_HOME", home);
  spec.stdout_fd = log.get();
  spec.stderr_fd = log.get();
  spec.own_session = true;
  processes_.push_back(TRY(spawn(spec)));
  return {};
}

}  // namespace pscloud

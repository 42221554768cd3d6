#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>

#include "cli/verb.h"
#include "launch/agent/agent.h"
#include "launch/agent/host_service.h"
#include "launch/agent/stream_link.h"

namespace pscloud {
namespace {

constexpr const char* kTaskAbout = R"(The agent of a launcher, which starts it where tasks run; not for people. It
speaks over stdin and stdout as docs/launch-agent.md says.)";

// One that programs do not inherit: who holds it keeps the stream open.
Fd private_copy(int fd) { return Fd(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)); }

int run_task(int silence_ms) {
  HostService service;
  StreamLink link(
      private_copy(STDIN_FILENO), private_copy(STDOUT_FILENO), silence_ms,
      [&](const JsonValue& question) { return service.answer(question); }, std::chrono::steady_clock::now());
  // What the agent's own programs and libraries print there is not for the launcher's eyes.
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  return run_agent(link, {});
}

}  // namespace

void add_task(CLI::App& verb, Action& action) {
  const auto silence_ms = std::make_shared<int>(0);
  verb.add_option("--silence-ms", *silence_ms, "a launcher that says nothing for so long is gone [0: never]")
      ->type_name("MS")
      ->check(CLI::NonNegativeNumber);
  verb.footer(kTaskAbout);
  verb.group("");
  verb.callback([silence_ms, &action] { action = [silence_ms] { return run_task(*silence_ms); }; });
}

}  // namespace pscloud

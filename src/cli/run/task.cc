#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "base/json.h"
#include "cli/exit_code.h"
#include "cli/verb.h"
#include "launch/agent/agent.h"
#include "launch/agent/host_service.h"
#include "launch/agent/spot_watch.h"
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

// A line when EC2 takes this machine away, and before that a file, for who is then told to end. Ends with its stdin.
int tell_notice(const std::string& file) {
  SpotWatch watch(process_aws_variables());
  while (true) {
    pollfd polled[] = {{STDIN_FILENO, POLLIN, 0}, {watch.fd(), POLLIN, 0}};
    if (::poll(polled, 2, -1) < 0) continue;
    char word[64];
    if (polled[0].revents != 0 && ::read(STDIN_FILENO, word, sizeof word) <= 0) return kExitDone;
    if (polled[1].revents == 0) continue;
    const auto notice = watch.take();
    if (!notice) continue;
    std::ofstream(file) << notice->at.time_since_epoch().count() << '\n';
    JsonWriter json;
    json.begin_object().field("action", notice->action);
    json.field("seconds", notice->seconds_left(std::chrono::system_clock::now())).end_object();
    fmt::print("{}\n", json.text());
    std::fflush(stdout);
  }
}

}  // namespace

void add_task(CLI::App& verb, Action& action) {
  const auto silence_ms = std::make_shared<int>(0);
  verb.add_option("--silence-ms", *silence_ms, "a launcher that says nothing for so long is gone [0: never]")
      ->type_name("MS")
      ->check(CLI::NonNegativeNumber);
  const auto notice = std::make_shared<std::string>();
  verb.add_option("--notice", *notice, "no tasks: say when EC2 takes this machine away, and note it there")
      ->type_name("FILE");
  verb.footer(kTaskAbout);
  verb.group("");
  verb.callback([silence_ms, notice, &action] {
    action = [silence_ms, notice] { return notice->empty() ? run_task(*silence_ms) : tell_notice(*notice); };
  });
}

}  // namespace pscloud

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/text.h"
#include "cli/exit_code.h"
#include "cli/verb.h"
#include "launch/agent/agent.h"
#include "launch/agent/stream_link.h"
#include "launch/process/login_environment.h"
#include "launch/rendezvous/folder_link.h"
#include "launch/rendezvous/secure_pipe.h"
#include "net/tls.h"

namespace pscloud {
namespace {

struct QueuedTask {
  std::string folder;   // to meet in,
  std::string connect;  // or an address to go to
  std::string tls_folder;
  int number = -1;
  std::string number_from;
  int number_first = 0;
  int64_t heartbeat_ms = 5000;
  int64_t lost_after_ms = 90000;
};

// A queue starts the same command for many tasks: some of them by a variable alone.
Result<int> number_of(const QueuedTask& flags) {
  if (flags.number >= 0) return flags.number;
  const char* const text = std::getenv(flags.number_from.c_str());
  int number = 0;
  if (text == nullptr || !parse_number(std::string_view(text), 0, 1 << 20, number)) {
    return invalid("{} must be the number of this task, and is {}", flags.number_from,
                   text == nullptr ? "not set" : text);
  }
  return flags.number_first + number;
}

Result<int> run_in_folder(const QueuedTask& flags) {
  auto opened = SharedFolder::open(flags.folder);
  if (!opened) return invalid("{}; it must be on a disk that all machines share", opened.error().message);
  SharedFolder folder = *std::move(opened);
  const std::string name = folder_file::spec(TRY(number_of(flags)));
  const TaskSpec spec = TRY(parse_task_spec(TRY(folder.read(name))).at(folder.path_of(name)));
  const FolderTimes times{std::chrono::milliseconds(flags.heartbeat_ms),
                          std::chrono::milliseconds(flags.lost_after_ms)};
  FolderLink link(std::move(folder), spec, times, FolderLink::Lines::kToFolder, std::chrono::steady_clock::now());
  return run_agent(link, {spec});
}

// What the task must know, and its certificate, were copied to where it was started.
Result<int> run_connected(const QueuedTask& flags) {
  constexpr std::chrono::seconds kConnectTime{60};
  constexpr uint64_t kRekeyBytes = uint64_t{1} << 36;
  const SharedFolder here = TRY(SharedFolder::open("."));
  const std::string name = folder_file::spec(TRY(number_of(flags)));
  const TaskSpec spec = TRY(parse_task_spec(TRY(here.read(name))).at(name));
  const auto tls = TRY(TlsContext::load(flags.tls_folder, kRekeyBytes));
  const Address launcher = TRY(parse_address(flags.connect));
  Fd socket = TRY(connect_until(launcher, std::chrono::steady_clock::now() + kConnectTime));
  auto stream = tls->connect(socket.get(), Role::kScheduler);
  const auto pipe = TRY(SecurePipe::over(std::move(socket), std::move(stream)));
  StreamLink link(pipe->take_near_end(), Fd(), static_cast<int>(flags.lost_after_ms), {},
                  std::chrono::steady_clock::now());
  return run_agent(link, {spec});
}

}  // namespace

void add_queued_task(CLI::App& verb, Action& action) {
  const auto flags = std::make_shared<QueuedTask>();
  verb.add_option("--folder", flags->folder);
  verb.add_option("--connect", flags->connect);
  verb.add_option("--tls-dir", flags->tls_folder);
  verb.add_option("--number", flags->number);
  verb.add_option("--number-from", flags->number_from);
  verb.add_option("--number-first", flags->number_first);
  verb.add_option("--heartbeat-ms", flags->heartbeat_ms);
  verb.add_option("--lost-after-ms", flags->lost_after_ms);
  verb.group("");
  verb.callback([flags, &action] {
    action = [flags] {
      add_login_environment();
      const auto code = flags->connect.empty() ? run_in_folder(*flags) : run_connected(*flags);
      return code ? *code : fail(code.error());
    };
  });
}

}  // namespace pscloud

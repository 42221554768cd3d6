#include "launch/run_report.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include "launch/launcher.h"
#include "launch/ledger.h"

namespace pscloud {
namespace {

constexpr std::chrono::milliseconds kLookAgain{10};

// Signals the process that holds the lock. Its id is only ours to signal while the lock is held, so that is asked
// again when the process is held by a handle: a number that was given to another process meanwhile is no harm.
Result<> signal_watcher(const RunFolder& folder, int times) {
  const pid_t pid = folder.watcher();
  if (pid <= 0) return unavailable("the process that looks after the run '{}' is not known", folder.name());
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process || !folder.is_watched() || folder.watcher() != pid) return {};  // it has just ended
  for (int i = 0; i < times; ++i) {
    if (::syscall(SYS_pidfd_send_signal, process.get(), i == 0 ? SIGTERM : SIGINT, nullptr, 0) != 0 && errno != ESRCH) {
      return unavailable("cannot signal process {}, which looks after the run '{}': {}", pid, folder.name(),
                         errno_text(errno));
    }
  }
  return {};
}

}  // namespace

std::string RunReport::note() const {
  const std::string note = lost ? "its launcher was killed" : state.message;
  if (things == 0) return lost ? note + "; nothing is left" : note;
  return fmt::format("{}{}{} thing{} left: `pscloud down`", note, note.empty() ? "" : "; ", things,
                     things == 1 ? " is" : "s are");
}

Result<RunReport> look_at_run(const RunFolder& folder) {
  RunReport report;
  report.watched = folder.is_watched();
  // After the question: a launcher writes how it ended, then lets go.
  report.state = TRY(folder.state());
  report.lost = !report.watched && !report.state.ended();
  if (!report.watched && !folder.is_settled()) {
    const size_t entries = TRY(Ledger::read(folder.path("ledger.jsonl"))).size();
    report.things = std::max(entries, report.state.left.size());
  }
  return report;
}

Result<std::vector<std::string>> stop_run(RunFolder& folder, bool at_once, int timeout_ms) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  if (folder.is_watched()) TRY(signal_watcher(folder, at_once ? 2 : 1));
  while (folder.is_watched()) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return timed_out("the run '{}' is still being stopped by process {}: `pscloud stop {} --at-once`", folder.name(),
                       folder.watcher(), folder.name());
    }
    std::this_thread::sleep_for(kLookAgain);
  }
  if (folder.is_settled()) return std::vector<std::string>();
  return clean_run(folder);
}

}  // namespace pscloud

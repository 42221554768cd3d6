#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "launch/agent/agent_link.h"
#include "launch/rendezvous/shared_folder.h"

namespace pscloud {

// How often each side shows that it lives, and how long the other waits for it: longer than NFS remembers (60 s).
struct FolderTimes {
  std::chrono::milliseconds heartbeat{5000};
  std::chrono::milliseconds lost_after{90000};
};

// The way between an agent and its launcher, or the leader of a rendezvous, by files in a folder that both see
// (shared_folder.h). The agent looks after 50 ms at first, every 2 s at last while it waits for the others; six times a
// second while its program runs, so that an order to stop does not wait.
class FolderLink final : public AgentLink {
  using milliseconds = std::chrono::milliseconds;

 public:
  // Why the link has ended.
  enum class Ending : uint8_t { kNone, kDone, kAbort, kLeaderLost, kNoLeader };

  // Where the lines of the program go: to the launcher, or to our own stdout and stderr where nobody reads them there.
  enum class Lines : uint8_t { kToFolder, kHere };

  // For one task, which run_agent() is given by its caller. A second one of the same task and attempt is told that the
  // launcher is gone, and so is one that sees no leader within the time in which all should be there.
  FolderLink(SharedFolder folder, const TaskSpec& spec, FolderTimes times, Lines lines, Time now);

  void say(const TaskEvent& event) override;
  std::optional<LauncherWord> next(Time now) override;
  void add_to(std::vector<pollfd>& polled) const override { (void)polled; }
  Time ask_again(Time now) const override;
  bool is_full() const override;
  // All of it stays on the shared disk until the job's end; and where nobody reads lines there, nobody reads these.
  Looks looks() const override {
    if (lines_ == Lines::kHere) return {milliseconds(0), milliseconds(0)};
    return {milliseconds(2000), milliseconds(20000)};
  }
  bool flush(Time deadline) override;

  Ending ending() const { return ending_; }
  // For people: why the link has ended, or the task was lost where nobody reads of it in the folder. And the exit code
  // that abort.json asks for.
  const std::string& why() const { return why_; }
  int abort_code() const { return abort_code_; }

 private:
  void arrive(const TaskEvent& event);
  void send();
  void show_life(Time now);
  std::optional<LauncherWord> look(Time now);
  std::optional<LauncherWord> look_at_order(std::string_view name);
  std::optional<LauncherWord> look_at_view();
  std::optional<LauncherWord> look_for_leader(bool there, Time now);
  LauncherWord gone(Ending ending, std::string why);

  const SharedFolder folder_;
  const std::string job_;
  const TaskId task_;
  const int attempt_;
  const FolderTimes times_;
  const Lines lines_;
  const std::string stop_name_;
  const std::string messages_name_;

  bool arrived_ = false;
  bool released_ = false;
  bool stopped_ = false;
  bool stopped_at_once_ = false;
  Ending ending_ = Ending::kNone;
  std::string why_;
  int abort_code_ = 1;
  std::string own_address_;

  Fd messages_;
  std::string unsent_;   // whole lines
  std::string failure_;  // why the link is broken; next() tells it
  Backoff backoff_;
  Time look_at_;
  Time beat_at_;
  Time leader_at_;                  // when to look for it
  const Time leader_by_;            // when it must have been seen
  std::optional<Liveness> leader_;  // since it was seen
};

}  // namespace pscloud

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "launch/run_state.h"
#include "pscloud/error.h"

namespace pscloud {

// Where the runs of this user are: $PSCLOUD_HOME/runs, or below $XDG_STATE_HOME, or ~/.local/state.
Result<std::string> find_runs_folder();

// All that is kept of a run, in a folder that its user alone may read: plan.json, cluster.json, ledger.jsonl,
// state.json, launcher.log, logs/worker-0.log, metrics.csv. Two files more are for the launchers: `lock`, which the
// process that looks after the run holds locked as long as it lives and which has its id, and `open`, which is there
// until the run has ended and nothing is left of it.
class RunFolder {
 public:
  // The texts of files, by name, for a run that is called so.
  using FirstFiles = std::function<Result<std::map<std::string, std::string>>(const std::string& run)>;

  // A new one, locked by this process, called `name` or, if there is such a run already, with a number behind it. It
  // appears with its first files in it, at once. With `exact`, kInvalid if a run of that name is still there.
  static Result<RunFolder> create(const std::string& runs, const std::string& name, bool exact,
                                  const FirstFiles& files);

  // One that is there; not locked. kNotFound names the nearest.
  static Result<RunFolder> open(const std::string& runs, const std::string& name);

  const std::string& name() const { return name_; }
  std::string path(std::string_view file = {}) const;

  // Another process looks after it.
  bool is_watched() const;
  // The process that does, or did last; 0 if unknown.
  pid_t watcher() const;
  // Takes it over. kUnavailable if another process has it.
  Result<> lock();
  // In a child process that goes on with the lock of its parent.
  Result<> write_watcher() const;

  Result<> write(std::string_view file, std::string_view text) const;  // whole or not at all
  Result<std::string> read(std::string_view file) const;
  Result<RunState> state() const;

  // It has ended, and nothing is left of it.
  void settle() const;
  bool is_settled() const;

 private:
  RunFolder(std::string runs, std::string name) : runs_(std::move(runs)), name_(std::move(name)) {}

  std::string runs_;
  std::string name_;
  Fd lock_;
};

// Writes a file of mode 0600 aside and puts it in the place of `path`: whole or not at all.
Result<> replace_file(const std::string& path, std::string_view text);

// A line of the history.
struct RunEntry {
  std::string name;
  int64_t changed_unix_ns = 0;
  bool settled = false;
};

// All runs, the newest first. Two looks at the file system for each, none into a file: a history of ten thousand is
// listed at once. Empty if there is no such folder yet.
std::vector<RunEntry> list_runs(const std::string& runs);

// Removes what launchers that were killed have left of runs that never appeared.
void remove_unborn(const std::string& runs);

}  // namespace pscloud

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launch/backend.h"
#include "launch/rendezvous/folder_watch.h"
#include "launch/rendezvous/task_watch.h"

namespace pscloud {

// What the back ends have in common whose cluster queues the tasks and starts our agents when and where it likes: the
// agents report by a TaskWatch, and the queue is asked now and then about those who cannot.
class QueueBackend : public Backend {
 public:
  using Now = TaskWatch::Now;

  Result<> release(const ClusterView& view) override;
  Result<> stop(TaskId task, bool at_once) override;
  Result<std::vector<TaskEvent>> wait(Now deadline, int wake_fd) override;

 protected:
  // Asks the queue, or looks whether it has answered. Must not wait: agents look for a sign of life of ours meanwhile,
  // and users press Ctrl-C. When to call it again.
  virtual Now ask_queue(Now now, std::vector<TaskEvent>& events) = 0;

  // Makes the folder `<shared>/<job>`, with what each task must know in it and the files of the job, and watches it. It
  // is in the ledger before.
  Result<FolderWatch*> meet_in_folder(const Plan& plan, const std::string& shared, FolderTimes times, Ledger& ledger);

  // kInvalid names the files of the plan that are not there.
  static Result<> check_files(const Plan& plan);
  // kInvalid if no folder can be made in `shared`, which is perhaps to be made too. Makes nothing: what is made stands
  // in a ledger, and a check has none.
  static Result<> check_shared(const std::string& shared, std::string_view option);

  // Removes a folder that clean() finds in the ledger.
  static Result<> remove_folder(const LedgerEntry& entry, Ledger& ledger);
  static constexpr const char* kFolderKind = "folder";
  // Where this program is brought to, with its libraries: below the folder that the agents see.
  static constexpr const char* kBundleFolder = "bundle";

  std::unique_ptr<TaskWatch> watch_;
  Now ask_at_{};
};

// With the folders above it; mode 0700.
Result<> make_private_folder(const std::string& path);

// Of the user's words; empty stays empty.
std::string absolute_path(const std::string& path);

// How agents of a queue are told their times: behind "pscloud".
std::vector<std::string> folder_arguments(const std::string& folder, FolderTimes times);

// An option that is a number of seconds. kInvalid if it is none.
Result<std::chrono::milliseconds> seconds_option(const Cluster& cluster, std::string_view name,
                                                 std::chrono::milliseconds otherwise);

}  // namespace pscloud

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/backend.h"
#include "launch/rendezvous/folder_link.h"
#include "launch/rendezvous/rendezvous_file.h"
#include "launch/rendezvous/shared_folder.h"
#include "launch/rendezvous/task_watch.h"

namespace pscloud {

// The other side of the FolderLinks: what the tasks of a job write to their folder, as events, and orders for them.
// Used by the launcher, and by the leader of a rendezvous without one. One thread.
class FolderWatch final : public TaskWatch {
 public:
  // From now on the tasks see that somebody leads. kInvalid if the folder has been led before: its job is over.
  static Result<std::unique_ptr<FolderWatch>> begin(SharedFolder folder, const std::string& job,
                                                    const std::vector<TaskId>& tasks, FolderTimes times, Now now);

  std::vector<TaskEvent> look(Now now) override;
  Now look_again() const override { return look_at_; }
  void add_to(std::vector<pollfd>& polled) const override { (void)polled; }
  Result<> release(const ClusterView& view) override;
  Result<> stop(TaskId task, bool at_once) override;
  void presume_lost(TaskId task, const std::string& why, Now deadline) override;

  // Everybody ends: with `code`, or as one that is done.
  Result<> abort(const std::string& reason, int code);
  Result<> done();

  const SharedFolder& folder() const { return folder_; }

 private:
  struct Task {
    std::optional<int> attempt;  // that has arrived
    uint64_t read_bytes = 0;     // of its messages
    int unreadable = 0;          // looks that found no message in a whole line
    std::optional<Liveness> life;
    bool ended = false;
    std::optional<std::pair<Now, std::string>> lost_at;
  };

  FolderWatch(SharedFolder folder, std::string job, FolderTimes times, Now now)
      : folder_(std::move(folder)), job_(std::move(job)), times_(times), look_at_(now), beat_at_(now), life_at_(now) {}

  void look_at_arrival(const folder_file::Attempt& attempt, Now now, std::vector<TaskEvent>& events);
  void refuse(const Arrival& arrival, Task& task, std::vector<TaskEvent>& events);
  // How many bytes of them were taken.
  uint64_t look_at_messages(TaskId id, Task& task, std::vector<TaskEvent>& events);
  void look_for_life(Now now, std::vector<TaskEvent>& events);
  void lose(TaskId id, Task& task, std::string why, std::vector<TaskEvent>& events);
  Result<> order(std::string_view name, bool at_once, const std::string& reason, int code);

  SharedFolder folder_;
  std::string job_;
  FolderTimes times_;
  std::map<TaskId, Task> tasks_;
  bool released_ = false;
  TaskId next_;        // whose messages the next look begins with
  bool more_ = false;  // some messages were not read for their number
  Backoff backoff_;
  Now look_at_;
  Now beat_at_;
  Now life_at_;  // when to look who lives
};

}  // namespace pscloud

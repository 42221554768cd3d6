#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launch/machine_supply.h"
#include "launch/plan.h"
#include "launch/run_folder.h"
#include "launch/supervisor.h"

namespace pscloud {

using MakeSupply = std::function<std::unique_ptr<MachineSupply>(const Cluster& cluster)>;

// Finds a machine for tasks whose own is taken away: one of the cluster that has nothing to do in this run, else one
// that the supply makes. Tasks of one machine stay together. One thread; does not block.
class MachineSearch {
 public:
  struct Found {
    TaskId task;
    std::optional<Host> host;  // none: `why`
    std::string why;
  };

  // `folder` is borrowed; it has the cluster.
  MachineSearch(const RunFolder& folder, MakeSupply make_supply);

  // `tasks` are all of the run, as they are now.
  void ask(TaskId task, const std::string& host, const std::vector<TaskStatus>& tasks);
  bool is_under_way() const { return !waiting_.empty(); }
  // What was found since the last time; and the progress, for people.
  std::vector<Found> take(std::vector<std::string>& words);

  // The run's folder says from now on that the task is on this host, for whoever cleans up or wants a shell there.
  Result<Plan> note(TaskId task, int attempt, const Host& host) const;

 private:
  struct Wish {
    TaskId task;
    std::string host;
  };

  Result<> read_cluster();
  std::optional<Host> find_idle(TaskRole role, const std::vector<TaskStatus>& tasks) const;

  const RunFolder& folder_;
  const MakeSupply make_supply_;
  std::optional<Cluster> cluster_;
  std::unique_ptr<MachineSupply> supply_;
  std::set<std::string> leaving_;              // machines that are taken away
  std::map<std::string, Result<Host>> found_;  // in the place of each
  std::vector<Wish> waiting_;
};

}  // namespace pscloud

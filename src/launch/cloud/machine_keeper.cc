#include "launch/cloud/machine_keeper.h"

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "base/text.h"
#include "launch/backend.h"
#include "launch/cloud/cloud_controller.h"
#include "launch/cloud/machine_wait.h"

namespace pscloud {
namespace {

constexpr int kIdleMax = 30 * 86400;

Result<Cluster> read_cluster(const RunFolder& run) {
  return parse_cluster_file(TRY(run.read("cluster.json")), "cluster.json");
}

}  // namespace

Result<int> idle_of(const Cluster& cluster) {
  const std::string idle = option_of(cluster, kIdleOption);
  int seconds = 0;
  if (!idle.empty() && !parse_number(idle, 0, kIdleMax, seconds)) {
    return invalid("{}:{}={}: a number of seconds", cluster.target, kIdleOption, idle);
  }
  return seconds;
}

MachineKeeper::MachineKeeper(const RunFolder& run) : run_(run) {
  const auto cluster = read_cluster(run_);
  const auto idle_s = cluster ? idle_of(*cluster) : Result<int>(0);
  if (idle_s && *idle_s > 0)
    thread_ = std::jthread([this, idle_s](const std::stop_token& stop) { work(stop, *idle_s); });
}

MachineKeeper::~MachineKeeper() {
  thread_.request_stop();
  MutexLock lock(mutex_);
  ending_ = true;
  changed_.notify_all();
}

void MachineKeeper::work(const std::stop_token& stop, int idle_s) {
  const std::chrono::seconds pause(std::max(idle_s / 4, 1));
  while (true) {
    if (const auto cluster = read_cluster(run_)) {
      std::vector<Host> machines = cluster->hosts;
      // It has no tasks, so it is none of the hosts. On a controller the cluster has no such name: it keeps itself.
      const auto controller = way_to_controller(cluster->cloud);
      if (controller) machines.push_back(controller->host);
      for (const std::string& line : keep_machines(machines, option_of(*cluster, "ssh_config"), stop)) {
        log_debug("no word to {}", line);  // whether a machine is lost is for others to say
      }
    }
    MutexLock lock(mutex_);
    if (changed_.wait_for(mutex_, pause, [&]() REQUIRES(mutex_) { return ending_; })) return;
  }
}

}  // namespace pscloud

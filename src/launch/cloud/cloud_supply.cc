#include <atomic>
#include <deque>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "launch/cloud/cloud_replace.h"
#include "launch/machine_supply.h"

namespace pscloud {
namespace {

constexpr size_t kMachinesAtOnce = 16;

// Machines of `pscloud cluster up` in the place of those that EC2 takes away. Threads of its own wait for them.
class CloudSupply final : public MachineSupply {
 public:
  CloudSupply(std::string cluster, AwsVariables environment)
      : cluster_(std::move(cluster)), environment_(std::move(environment)) {}
  ~CloudSupply() override { ending_ = true; }

  void ask(const std::string& host) override {
    MutexLock lock(mutex_);
    wishes_.push_back(host);
    if (running_ == kMachinesAtOnce) return;
    ++running_;
    threads_.emplace_back([this] { work(); });
  }

  News take() override {
    MutexLock lock(mutex_);
    return std::exchange(news_, {});
  }

 private:
  void work() {
    while (true) {
      std::string host;
      {
        MutexLock lock(mutex_);
        if (wishes_.empty() || ending_) {
          --running_;
          return;
        }
        host = std::move(wishes_.front());
        wishes_.pop_front();
      }
      const ReplaceOptions options{.say = [this](std::string_view line) { say(line); },
                                   .cancelled = [this] { return ending_.load(); },
                                   .environment = environment_};
      auto made = replace_machine(cluster_, host, options);
      MutexLock lock(mutex_);
      news_.offers.push_back({host, std::move(made)});
    }
  }

  void say(std::string_view line) {
    MutexLock lock(mutex_);
    news_.words.emplace_back(line);
  }

  const std::string cluster_;
  const AwsVariables environment_;
  std::atomic<bool> ending_ = false;
  Mutex mutex_;
  std::deque<std::string> wishes_ GUARDED_BY(mutex_);
  size_t running_ GUARDED_BY(mutex_) = 0;
  News news_ GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_;  // last: they use the others
};

}  // namespace

std::unique_ptr<MachineSupply> make_cloud_supply(std::string cluster, AwsVariables environment) {
  return std::make_unique<CloudSupply>(std::move(cluster), std::move(environment));
}

std::unique_ptr<MachineSupply> make_machine_supply(const Cluster& cluster) {
  if (cluster.cloud.empty()) return nullptr;
  return make_cloud_supply(cluster.cloud, process_aws_variables());
}

}  // namespace pscloud

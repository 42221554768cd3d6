#include "launch/swarm/swarm_sampler.h"

#include <fmt/format.h>

#include "base/log.h"
#include "launch/swarm/container_figures.h"

namespace pscloud {
namespace {

constexpr std::chrono::seconds kLookEvery{2};
constexpr std::chrono::seconds kToMeasure{10};

}  // namespace

SwarmSampler::~SwarmSampler() {
  MutexLock lock(mutex_);
  ending_ = true;
  changed_.notify_all();
}

void SwarmSampler::watch(TaskId task, const std::string& container, const std::string& node,
                         const EngineAddress& engine) {
  {
    MutexLock lock(mutex_);
    watched_[task] = {container, node};
  }
  if (threads_.contains(node) || threads_.size() >= kNodesMax) return;
  threads_[node] = std::jthread([this, node, engine] { run(node, engine); });
}

void SwarmSampler::forget(TaskId task) {
  MutexLock lock(mutex_);
  watched_.erase(task);
}

std::vector<TaskEvent> SwarmSampler::take() {
  MutexLock lock(mutex_);
  std::vector<TaskEvent> events;
  for (auto& [task, figures] : measured_) {
    events.push_back({.kind = TaskEvent::Kind::kSample, .task = task, .figures = std::move(figures)});
  }
  measured_.clear();
  return events;
}

void SwarmSampler::run(const std::string& node, EngineAddress address) {
  address.http.tries = 1;
  address.http.total_timeout = kToMeasure;
  address.http.cancelled = [this] {
    MutexLock lock(mutex_);
    return ending_;
  };
  DockerEngine engine(std::move(address));
  std::map<TaskId, ContainerFigures> figures;
  while (true) {
    std::map<TaskId, Watched> mine;
    {
      MutexLock lock(mutex_);
      for (const auto& [task, watched] : watched_) {
        if (watched.node == node) mine[task] = watched;
      }
    }
    for (const auto& [task, watched] : mine) {
      const auto stats = engine.get(fmt::format("/containers/{}/stats", watched.container),
                                    {{"stream", "false"}, {"one-shot", "true"}});
      if (!stats) {
        log_debug("{}: {}", task.text(), stats.error().message);  // it has just ended, say
        continue;
      }
      Figures measured = figures[task].take(*stats, std::chrono::steady_clock::now());
      if (measured.empty()) continue;
      MutexLock lock(mutex_);
      measured_[task] = std::move(measured);
    }
    MutexLock lock(mutex_);
    if (changed_.wait_for(mutex_, kLookEvery, [&]() REQUIRES(mutex_) { return ending_; })) return;
  }
}

}  // namespace pscloud

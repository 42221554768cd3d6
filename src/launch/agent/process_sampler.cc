#include "launch/agent/process_sampler.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "launch/process/processes.h"

namespace pscloud {
namespace {

constexpr size_t kNobody = static_cast<size_t>(-1);
constexpr int kGenerationsMax = 64;

double clock_ticks() {
  static const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return ticks;
}
uint64_t page_bytes() {
  static const auto bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

// Which of the tasks each process of the machine belongs to.
class Families {
 public:
  Families(std::span<const SampledTask> tasks, const std::vector<ProcessUse>& processes) : tasks_(tasks) {
    for (size_t i = 0; i < tasks.size(); ++i) by_session_[tasks[i].program] = i;
    for (const ProcessUse& process : processes) by_pid_[process.pid] = &process;
  }

  // kNobody if it is none's. By its session; if it has left that, by the nearest parent who has not; and one whose
  // parents are gone, and which therefore came to us, by the mark in its environment.
  size_t task_of(const ProcessUse& process) const {
    const ProcessUse* at = &process;
    for (int i = 0; i < kGenerationsMax; ++i) {
      if (const auto found = by_session_.find(at->session); found != by_session_.end()) return found->second;
      if (at->parent == own_pid_) return by_mark(at->pid);
      const auto parent = by_pid_.find(at->parent);
      if (parent == by_pid_.end()) return kNobody;
      at = parent->second;
    }
    return kNobody;
  }

 private:
  size_t by_mark(pid_t pid) const {
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (has_entry(pid, tasks_[i].mark, false)) return i;
    }
    return kNobody;
  }

  const std::span<const SampledTask> tasks_;
  const pid_t own_pid_ = ::getpid();
  std::unordered_map<pid_t, size_t> by_session_;
  std::unordered_map<pid_t, const ProcessUse*> by_pid_;
};

struct Used {
  uint64_t ticks = 0;
  uint64_t pages = 0;
  std::vector<pid_t> processes;
};

}  // namespace

std::vector<Figures> ProcessSampler::look(std::span<const SampledTask> tasks, Time now) {
  const std::vector<ProcessUse> processes = all_process_uses();
  const Families families(tasks, processes);
  std::vector<Used> used(tasks.size());
  for (const ProcessUse& process : processes) {
    const size_t i = families.task_of(process);
    if (i == kNobody) continue;
    used[i].ticks += process.ticks;
    used[i].pages += process.resident_pages;
    used[i].processes.push_back(process.pid);
  }
  std::erase_if(last_, [&](const auto& last) {
    return std::ranges::find(tasks, last.first, &SampledTask::program) == tasks.end();
  });
  const auto sockets = all_tcp_sockets();
  std::vector<Figures> result;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const auto [found, is_new] = last_.try_emplace(tasks[i].program);
    Last& last = found->second;
    const double cpu_s = static_cast<double>(used[i].ticks) / clock_ticks();
    Figures figures;
    if (is_new) last.at = tasks[i].started;
    // Processes that have ended take their time with them, unless their parent has waited for them.
    const double share = std::max(0.0, cpu_s - last.cpu_s) / std::chrono::duration<double>(now - last.at).count();
    if (std::isfinite(share)) figures.emplace_back("cpu_percent", std::round(share * 1000) / 10);
    last.cpu_s = cpu_s;
    last.at = now;
    figures.emplace_back("memory_bytes", static_cast<double>(used[i].pages * page_bytes()));
    if (sockets) {
      last.sockets.look(*sockets, used[i].processes);
      figures.emplace_back("sent_bytes", static_cast<double>(last.sockets.sent()));
      figures.emplace_back("received_bytes", static_cast<double>(last.sockets.received()));
    }
    result.push_back(std::move(figures));
  }
  return result;
}

}  // namespace pscloud

#include "cli/bench/bench_adder_gather.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <set>

#include "base/text.h"
#include "cli/bench/quantiles.h"

namespace pscloud {
namespace {

constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();

bool take_word(std::string_view& line, std::string_view word) {
  if (!line.starts_with(word)) return false;
  line.remove_prefix(word.size());
  return true;
}

bool moves_tensors(TaskId task) { return task.role == TaskRole::kServer || task.role == TaskRole::kWorker; }

}  // namespace

std::string encode_limits(const AdderLimits& limits) {
  return fmt::format("limits {} {} {} {} {}", limits.add_ms, limits.add2_ms, limits.copy_ms, limits.poll_ms,
                     limits.threads_ms);
}

Result<AdderLimits> decode_limits(std::string_view line) {
  AdderLimits limits;
  if (std::sscanf(std::string(line).c_str(), "limits %lf %lf %lf %lf %lf", &limits.add_ms, &limits.add2_ms,
                  &limits.copy_ms, &limits.poll_ms, &limits.threads_ms) != 5) {
    return corrupt("a worker said \"{}\"", escape_controls(line));
  }
  return limits;
}

LineLook AdderGather::look(const TaskEvent& event) {
  if (!event.host.empty()) machines_[event.task] = event.host;
  if (event.kind == TaskEvent::Kind::kArrived && moves_tensors(event.task)) hosts_[event.task] = event.address.host;
  if (event.kind != TaskEvent::Kind::kLine) return LineLook::kHidden;
  std::string_view line = event.text;
  // Where stdout and stderr come as one, our own lines are told by their word.
  if (!take_word(line, kAdderLine)) return event.is_stderr ? LineLook::kNamed : LineLook::kHidden;
  if (auto taken = take(event.task, line); !taken && !wrong_) {
    wrong_ = Error{taken.error().code, fmt::format("{}: {}", event.task.text(), taken.error().message)};
  }
  return LineLook::kHidden;
}

Result<> AdderGather::take(TaskId task, std::string_view line) {
  if (line == kMissingWord) {
    missing_.push_back(task);
    return {};
  }
  if (task.role != TaskRole::kWorker) return corrupt("said \"{}\"", escape_controls(line));
  WorkerStory& worker = workers_[task];
  if (take_word(line, kReadyWord)) {
    worker.how = escape_controls(line);
  } else if (take_word(line, kApartWord)) {
    worker.apart.push_back(TRY(decode_sample(line)));
  } else if (take_word(line, kUnmeasuredWord)) {
    unmeasured_ = escape_controls(line);
  } else if (line == kValuesOk || line == kValuesWrong) {
    worker.values_ok = line == kValuesOk;
  } else if (line.starts_with("limits ")) {
    limits_.push_back(TRY(decode_limits(line)));
  } else {
    worker.samples.push_back(TRY(decode_sample(line)));
  }
  tell_steps();
  return {};
}

void AdderGather::tell_steps() {
  const auto first = workers_.find({TaskRole::kWorker, 0});
  if (first == workers_.end()) return;
  const WorkerStory& story = first->second;
  const std::vector<AdderSample>& splits = measures_apart() && !story.apart.empty() ? story.apart : story.samples;
  const bool waits_for_apart = measures_apart() && !story.values_ok;  // a peer has none
  const size_t known = waits_for_apart ? std::min(story.samples.size(), story.apart.size()) : story.samples.size();
  for (; steps_told_ < known; ++steps_told_) {
    const AdderSample& sample = story.samples[steps_told_];
    on_step_(sample, steps_told_ < splits.size() ? splits[steps_told_] : sample);
  }
}

std::vector<std::string> AdderGather::missing_on() const {
  std::set<std::string> names;
  for (const TaskId task : missing_) {
    const auto machine = machines_.find(task);
    names.insert(machine == machines_.end() ? task.text() : machine->second);
  }
  return {names.begin(), names.end()};
}

int AdderGather::hosts() const {
  std::set<std::string> hosts;
  for (const auto& [task, host] : hosts_) hosts.insert(host);
  return static_cast<int>(hosts.size());
}

double AdderGather::tensors_moved() const {
  // Each worker exchanges an equal part of its tensor with each server; a pair on one machine passes that once.
  std::map<std::string, int> pairs;
  for (const auto& [worker, at] : hosts_) {
    if (worker.role != TaskRole::kWorker) continue;
    for (const auto& [server, there] : hosts_) {
      if (server.role != TaskRole::kServer) continue;
      ++pairs[at];
      if (there != at) ++pairs[there];
    }
  }
  int busiest = 0;
  for (const auto& [host, count] : pairs) busiest = std::max(busiest, count);
  return static_cast<double>(busiest) / flags_.cluster.servers;
}

double AdderGather::tensors_added() const {
  std::map<std::string, int> servers;
  int busiest = 0;
  for (const auto& [task, host] : hosts_) {
    if (task.role == TaskRole::kServer) busiest = std::max(busiest, ++servers[host]);
  }
  return static_cast<double>(busiest) * flags_.cluster.workers / flags_.cluster.servers;
}

Result<AdderOutcome> AdderGather::outcome() const {
  if (wrong_) return *wrong_;
  AdderOutcome outcome;
  outcome.cpu_server_s = kNotKnown;
  for (int i = 0; i < flags_.cluster.workers; ++i) {
    const TaskId task{TaskRole::kWorker, i};
    const auto found = workers_.find(task);
    const size_t told = found == workers_.end() ? 0 : found->second.samples.size();
    if (told != static_cast<size_t>(flags_.iters) || !found->second.values_ok) {
      return corrupt("{} has told of {} of {} iterations", task.text(), told, flags_.iters);
    }
    const WorkerStory& worker = found->second;
    if (i == 0) outcome.transport = worker.how;
    if (i == 0) outcome.apart = worker.apart;
    outcome.values_ok &= *worker.values_ok;
    outcome.samples.push_back(worker.samples);
    for (const AdderSample& sample : worker.samples) outcome.cpu_worker_s += sample.cpu_s;
  }
  outcome.cpu_s = outcome.cpu_worker_s;
  std::vector<double> poll_ms, threads_ms;
  for (const AdderLimits& limits : limits_) {
    outcome.add_ms.push_back(limits.add_ms * tensors_added());
    outcome.add2_ms.push_back(limits.add2_ms * tensors_added());
    outcome.copy_ms.push_back(limits.copy_ms * tensors_added());
    if (std::isnan(limits.poll_ms) || std::isnan(limits.threads_ms)) continue;
    poll_ms.push_back(limits.poll_ms * tensors_moved());
    threads_ms.push_back(limits.threads_ms * tensors_moved());
  }
  outcome.socket_ms = quantile(poll_ms, 0.5) < quantile(threads_ms, 0.5) ? poll_ms : threads_ms;
  return outcome;
}

}  // namespace pscloud

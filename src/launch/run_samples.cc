#include "launch/run_samples.h"

#include <fmt/format.h>
#include <signal.h>  // NOLINT: <csignal> does not promise sigset_t

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/json_value.h"
#include "launch/metrics_csv.h"
#include "launch/run_folder.h"
#include "launch/sample_file.h"

namespace pscloud {
namespace {

// Rows of one moment go to the disk together.
constexpr std::chrono::milliseconds kTogether{500};

// Signals are for the thread that looks after the run.
std::jthread start_without_signals(std::function<void()> work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::jthread thread(std::move(work));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

RunSamples::RunSamples(std::string run_folder, const Plan& plan) : folder_(std::move(run_folder)), plan_(plan) {}

RunSamples::~RunSamples() { finish(); }

void RunSamples::take(const TaskEvent& event, int64_t unix_ms) {
  Figures of_line;
  if (event.kind == TaskEvent::Kind::kLine) {
    if (!event.continues) of_line = figures_of_line(event.text);
    if (of_line.empty()) return;
  } else if (event.kind != TaskEvent::Kind::kSample) {
    return;
  }
  {
    MutexLock lock(mutex_);
    const std::string task = event.task.text();
    for (const auto& [name, value] : event.figures) add_row(unix_ms, task, name, value);
    for (const auto& [name, value] : of_line) add_row(unix_ms, task, name, value);
    if (event.kind == TaskEvent::Kind::kSample && !event.text.empty()) {
      if (event.task.role == TaskRole::kScheduler) add_heartbeats(event.text, unix_ms);
      nodes_[event.task] = event.text;
      nodes_changed_ = true;
    }
    changed_.notify_all();
  }
  if (!writer_.joinable()) writer_ = start_without_signals([this] { write_loop(); });
}

void RunSamples::add_row(int64_t unix_ms, std::string_view task, std::string_view name, double value) {
  if (!is_figure_name(name) || !std::isfinite(value)) return;
  if (rows_.size() > kPendingBytesMax) {
    ++dropped_;
    return;
  }
  fmt::format_to(std::back_inserter(rows_), "{},{},{},{}\n", unix_ms, task, name, value);
}

// What the scheduler knows of the others is a figure of theirs. A rank is the number of a task only if each task of the
// role is one node.
void RunSamples::add_heartbeats(const std::string& status, int64_t unix_ms) {
  const auto parsed = JsonValue::parse(status);
  if (!parsed) return;
  for (const TaskRole role : {TaskRole::kServer, TaskRole::kWorker}) {
    std::map<int64_t, double> ages;  // by rank; the owners of a server share one
    for (const JsonValue& node : (*parsed)["nodes"].items()) {
      const int64_t rank = node["rank"].integer(-1);
      if (node["role"].text() != role_name(role) || node["state"].text() != "live" || rank < 0) continue;
      double& age = ages[rank];
      age = std::max(age, node["heard_ms_ago"].number());
    }
    const auto tasks = std::ranges::count(plan_.tasks, role, [](const PlannedTask& task) { return task.spec.id.role; });
    if (ages.empty() || ages.rbegin()->first >= tasks) continue;
    for (const auto& [rank, age] : ages) {
      add_row(unix_ms, TaskId{role, static_cast<int>(rank)}.text(), "heartbeat_age_ms", age);
    }
  }
}

void RunSamples::finish() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  if (writer_.joinable()) writer_.join();
}

std::string RunSamples::trouble() const {
  MutexLock lock(mutex_);
  if (!error_.empty()) return error_;
  return dropped_ == 0 ? "" : fmt::format("{} samples were not written: the disk is too slow", dropped_);
}

void RunSamples::write_loop() {
  SampleFile samples(folder_ + "/samples.csv");
  while (true) {
    std::string rows;
    std::map<TaskId, std::string> nodes;
    bool nodes_changed = false;
    {
      MutexLock lock(mutex_);
      changed_.wait_for(mutex_, std::chrono::hours(1),
                        [&]() REQUIRES(mutex_) { return ending_ || !rows_.empty() || nodes_changed_; });
      changed_.wait_for(mutex_, kTogether, [&]() REQUIRES(mutex_) { return ending_; });
      if (ending_ && rows_.empty() && !nodes_changed_) return;
      rows = std::exchange(rows_, {});
      nodes_changed = std::exchange(nodes_changed_, false);
      if (nodes_changed) nodes = nodes_;
    }
    auto written = samples.append(rows);
    if (written && nodes_changed) written = write_nodes(nodes);
    if (written) continue;
    MutexLock lock(mutex_);
    error_ = written.error().message;
  }
}

Result<> RunSamples::write_nodes(const std::map<TaskId, std::string>& nodes) const {
  std::string text;
  for (const auto& [task, status] : nodes) {
    text += fmt::format("{}\"{}\":{}", text.empty() ? "{" : ",\n", task.text(), status);
  }
  return replace_file(folder_ + "/nodes.json", text + "}\n");
}

}  // namespace pscloud

#include "launch/rendezvous/folder_watch.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"
#include "launch/agent/agent_message.h"
#include "launch/rendezvous/rendezvous_file.h"

namespace pscloud {
namespace {

// Of one task in one look; the longest message fits.
constexpr uint64_t kMessageBytesMax = 4 * kAgentLineMax;
// Of all tasks in one look: the rest waits for the next, which begins where this one ended.
constexpr uint64_t kLookBytesMax = 4 * kMessageBytesMax;
// While programs run: servers are to hear of the last worker's end within a second, and it takes two looks, the
// other by their agent, and some work on the disk.
constexpr std::chrono::milliseconds kRunningLook{150};
// A reader may see a file of NFS grow before its bytes are there.
constexpr int kUnreadableMax = 100;

}  // namespace

Result<std::unique_ptr<FolderWatch>> FolderWatch::begin(SharedFolder folder, const std::string& job,
                                                        const std::vector<TaskId>& tasks, FolderTimes times, Now now) {
  const auto led = folder.create(folder_file::kLeader, folder_order_json({.job = job}));
  if (!led && led.error().code == Code::kInvalid) {
    return invalid("{} has a leader already: every job needs an id of its own", folder.path());
  }
  TRY(led);
  std::unique_ptr<FolderWatch> watch(new FolderWatch(std::move(folder), job, times, now));
  for (const TaskId& task : tasks) watch->tasks_.try_emplace(task);
  return watch;
}

std::vector<TaskEvent> FolderWatch::look(Now now) {
  if (now >= beat_at_) {
    beat_at_ = now + times_.heartbeat;
    const auto touched = folder_.touch(folder_file::kLeader);
    if (!touched) log_warning("cannot show the tasks that the launcher lives: {}", touched.error().message);
  }
  std::vector<TaskEvent> events;
  more_ = false;
  const auto names = folder_.names();
  if (!names) log_debug("{}: {}", folder_.path(), names.error().message);
  if (names) {
    for (const std::string& name : *names) {
      if (const auto arrived = folder_file::of_arrival(name)) look_at_arrival(*arrived, now, events);
    }
    auto each = tasks_.lower_bound(next_);
    uint64_t bytes = 0;
    for (size_t i = 0; i < tasks_.size() && bytes < kLookBytesMax; ++i, ++each) {
      if (each == tasks_.end()) each = tasks_.begin();
      auto& [id, task] = *each;
      if (!task.attempt || !std::ranges::binary_search(*names, folder_file::messages(id, *task.attempt))) continue;
      bytes += look_at_messages(id, task, events);
    }
    if (each == tasks_.end()) each = tasks_.begin();
    more_ = more_ || bytes >= kLookBytesMax;
    if (each != tasks_.end()) next_ = each->first;
  }
  for (auto& [id, task] : tasks_) {
    if (!task.ended && task.lost_at && now >= task.lost_at->first) lose(id, task, task.lost_at->second, events);
  }
  if (now >= life_at_) look_for_life(now, events);
  if (!events.empty()) backoff_.reset();
  look_at_ = more_ ? now : now + backoff_.next();
  return events;
}

void FolderWatch::look_at_arrival(const folder_file::Attempt& attempt, Now now, std::vector<TaskEvent>& events) {
  const auto found = tasks_.find(attempt.task);
  if (found == tasks_.end()) return;
  Task& task = found->second;
  if (task.ended || (task.attempt && *task.attempt >= attempt.attempt)) return;
  const auto text = folder_.read(folder_file::arrival(attempt.task, attempt.attempt));
  if (!text) return;  // the next look
  const auto arrival = parse_arrival(*text);
  if (!arrival || arrival->job != job_ || arrival->task != attempt.task) return;
  if (arrival->version != own_version()) {
    refuse(*arrival, task, events);
    return;
  }
  if (task.attempt) {
    lose(attempt.task, task, fmt::format("was started again on {}, after it had arrived", arrival->host), events);
    return;
  }
  task.attempt = attempt.attempt;
  task.life.emplace(times_.lost_after, now);
  events.push_back(
      {.kind = TaskEvent::Kind::kArrived, .task = attempt.task, .host = arrival->host, .address = arrival->address});
}

// Of another version: what the two of us write here may mean different things.
void FolderWatch::refuse(const Arrival& arrival, Task& task, std::vector<TaskEvent>& events) {
  const auto told = order(folder_file::stop(arrival.task), true, "", 1);
  if (!told) log_warning("cannot tell {} to end: {}", arrival.task.text(), told.error().message);
  task.ended = true;
  const std::string theirs = arrival.version.empty() ? "of before versions were told" : arrival.version;
  events.push_back({.kind = TaskEvent::Kind::kLost,
                    .task = arrival.task,
                    .host = arrival.host,
                    .text = fmt::format("it is pscloud {}, and its leader is pscloud {}", theirs, own_version())});
}

uint64_t FolderWatch::look_at_messages(TaskId id, Task& task, std::vector<TaskEvent>& events) {
  if (task.ended) return 0;
  const auto text = folder_.read_from(folder_file::messages(id, *task.attempt), task.read_bytes, kMessageBytesMax);
  if (!text) return 0;
  more_ = more_ || text->size() == kMessageBytesMax;
  size_t begin = 0;
  for (size_t end = text->find('\n'); end != std::string::npos && !task.ended; end = text->find('\n', begin)) {
    auto line = parse_agent_line(std::string_view(*text).substr(begin, end - begin));
    if (!line || !line->event || line->event->task != id) {
      // Not what was written: to be read again. It stays so only if somebody else has written there.
      if (++task.unreadable > kUnreadableMax) {
        lose(id, task,
             fmt::format("cannot be understood: {}", folder_.path_of(folder_file::messages(id, *task.attempt))),
             events);
      }
      break;
    }
    task.unreadable = 0;
    TaskEvent& event = *line->event;
    task.ended = event.kind == TaskEvent::Kind::kExited || event.kind == TaskEvent::Kind::kLost;
    events.push_back(std::move(event));
    begin = end + 1;
  }
  task.read_bytes += begin;
  return begin;
}

void FolderWatch::look_for_life(Now now, std::vector<TaskEvent>& events) {
  life_at_ = now + times_.heartbeat / 2;
  for (auto& [id, task] : tasks_) {
    if (task.ended || !task.life) continue;
    std::optional<SharedFolder::Stamp> stamp;
    if (const auto found = folder_.stamp(folder_file::arrival(id, *task.attempt))) stamp = *found;
    if (task.life->alive(stamp, now)) continue;
    lose(id, task,
         fmt::format("has given no sign of life for {} s",
                     std::chrono::duration_cast<std::chrono::seconds>(times_.lost_after).count()),
         events);
  }
}

void FolderWatch::lose(TaskId id, Task& task, std::string why, std::vector<TaskEvent>& events) {
  task.ended = true;
  events.push_back({.kind = TaskEvent::Kind::kLost, .task = id, .text = std::move(why)});
}

void FolderWatch::presume_lost(TaskId id, const std::string& why, Now deadline) {
  const auto task = tasks_.find(id);
  if (task == tasks_.end() || task->second.ended) return;
  if (task->second.lost_at && task->second.lost_at->first < deadline) return;
  task->second.lost_at = {deadline, why};
  look_at_ = std::min(look_at_, deadline);
  backoff_.reset();
}

Result<> FolderWatch::release(const ClusterView& view) {
  TRY(folder_.write(folder_file::kCluster, cluster_view_json(view)));
  if (!std::exchange(released_, true)) backoff_ = Backoff(kRunningLook);
  return {};
}

Result<> FolderWatch::order(std::string_view name, bool at_once, const std::string& reason, int code) {
  backoff_.reset();
  return folder_.write(name, folder_order_json({.job = job_, .at_once = at_once, .reason = reason, .code = code}));
}

Result<> FolderWatch::stop(TaskId id, bool at_once) {
  const auto task = tasks_.find(id);
  if (task == tasks_.end() || task->second.ended) return {};
  return order(folder_file::stop(id), at_once, "", 1);
}

Result<> FolderWatch::abort(const std::string& reason, int code) {
  return order(folder_file::kAbort, false, reason, code);
}

Result<> FolderWatch::done() { return order(folder_file::kDone, false, "", 0); }

}  // namespace pscloud

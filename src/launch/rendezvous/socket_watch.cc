#include "launch/rendezvous/socket_watch.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/log.h"
#include "launch/agent/agent_message.h"
#include "net/socket.h"

namespace pscloud {
namespace {

constexpr uint64_t kRekeyBytes = uint64_t{1} << 36;
constexpr size_t kEventsAtOnce = 1000;
// Far more than a job has tasks at worst: strangers who connect and say nothing do not use up our descriptors.
constexpr size_t kStrangersMax = 64;

}  // namespace

Result<std::unique_ptr<SocketWatch>> SocketWatch::begin(Fd listener, const std::string& tls_folder,
                                                        const std::vector<TaskId>& tasks) {
  auto tls = TRY(TlsContext::load(tls_folder, kRekeyBytes));
  std::unique_ptr<SocketWatch> watch(new SocketWatch(std::move(listener), std::move(tls)));
  for (const TaskId& task : tasks) watch->tasks_.try_emplace(task);
  return watch;
}

void SocketWatch::accept_all() {
  while (true) {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) return;
    const auto strangers = std::ranges::count_if(connections_, [](const Connection& c) { return c.tasks.empty(); });
    if (static_cast<size_t>(strangers) > kStrangersMax + tasks_.size()) continue;
    set_lane_options(socket.get());
    auto stream = tls_->accept(socket.get());
    auto pipe = SecurePipe::over(std::move(socket), std::move(stream));
    if (!pipe) {
      log_warning("{}", pipe.error().message);
      continue;
    }
    Fd near = (*pipe)->take_near_end();
    connections_.push_back({*std::move(pipe), AgentStream(std::move(near), Fd()), {}});
  }
}

std::vector<TaskEvent> SocketWatch::look(Now now) {
  std::vector<TaskEvent> events;
  accept_all();
  for (Connection& connection : connections_) read(connection, events);
  // What is broken has been read to its end.
  connections_.remove_if([](const Connection& connection) { return connection.stream.broken().has_value(); });
  if (now >= beat_at_) {
    beat_at_ = now + kBeatEvery;
    for (Connection& connection : connections_) connection.stream.send(beat_line());
  }
  for (auto& [id, task] : tasks_) {
    if (task.ended || !task.lost_at || now < task.lost_at->first) continue;
    task.ended = true;
    events.push_back({.kind = TaskEvent::Kind::kLost, .task = id, .text = task.lost_at->second});
  }
  return events;
}

void SocketWatch::read(Connection& connection, std::vector<TaskEvent>& events) {
  std::vector<TaskEvent> said;
  std::vector<JsonValue> answers;
  connection.stream.read(kEventsAtOnce, said, answers);
  for (TaskEvent& event : said) take(connection, std::move(event), events);
  if (!connection.stream.broken()) return;
  for (const TaskId id : connection.tasks) {
    Task& task = tasks_.at(id);
    if (task.ended) continue;
    task.ended = true;
    events.push_back({.kind = TaskEvent::Kind::kLost, .task = id, .text = *connection.stream.broken()});
  }
}

void SocketWatch::take(Connection& connection, TaskEvent event, std::vector<TaskEvent>& events) {
  const auto found = tasks_.find(event.task);
  if (found == tasks_.end() || found->second.ended) return;
  Task& task = found->second;
  if (!connection.tasks.contains(event.task)) {
    // Another start of a task that is there already: its program must not run a second time.
    if (task.arrived) {
      connection.stream.send(stop_line(event.task, true));
      return;
    }
    connection.tasks.insert(event.task);
    if (task.stop) connection.stream.send(stop_line(event.task, *task.stop));
  }
  task.arrived = true;
  task.ended = event.kind == TaskEvent::Kind::kExited || event.kind == TaskEvent::Kind::kLost;
  events.push_back(std::move(event));
}

SocketWatch::Now SocketWatch::look_again() const {
  Now next = beat_at_;
  for (const auto& [id, task] : tasks_) {
    if (!task.ended && task.lost_at) next = std::min(next, task.lost_at->first);
  }
  return next;
}

void SocketWatch::add_to(std::vector<pollfd>& polled) const {
  polled.push_back({listener_.get(), POLLIN, 0});
  for (const Connection& connection : connections_) connection.stream.add_to(polled);
}

Result<> SocketWatch::release(const ClusterView& view) {
  for (Connection& connection : connections_) connection.stream.send(view_line(view));
  return {};
}

Result<> SocketWatch::stop(TaskId id, bool at_once) {
  const auto task = tasks_.find(id);
  if (task == tasks_.end() || task->second.ended) return {};
  task->second.stop = at_once;
  for (Connection& connection : connections_) {
    if (connection.tasks.contains(id)) connection.stream.send(stop_line(id, at_once));
  }
  return {};
}

void SocketWatch::presume_lost(TaskId id, const std::string& why, Now deadline) {
  const auto task = tasks_.find(id);
  if (task == tasks_.end() || (task->second.lost_at && task->second.lost_at->first < deadline)) return;
  task->second.lost_at = {deadline, why};
}

}  // namespace pscloud

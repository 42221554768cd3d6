#include "launch/agent/agent_hosts.h"

#include <fmt/format.h>

#include <algorithm>

namespace pscloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Of one host before the others have their turn.
constexpr size_t kEventsAtOnce = 256;

bool ends_task(TaskEvent::Kind kind) { return kind == TaskEvent::Kind::kExited || kind == TaskEvent::Kind::kLost; }

}  // namespace

AgentConnection& AgentHosts::add(AgentConnection connection) {
  return hosts_.emplace_back(Machine{std::move(connection), {}, {}}).connection;
}

AgentConnection* AgentHosts::find(const std::string& host) {
  const auto found = std::ranges::find(hosts_, host, [](const Machine& m) { return m.connection.host(); });
  return found == hosts_.end() ? nullptr : &found->connection;
}

void AgentHosts::poll_all(Time deadline, int wake_fd) {
  std::vector<pollfd> polled;
  for (const Machine& machine : hosts_) machine.connection.add_to(polled);
  if (wake_fd >= 0) polled.push_back({wake_fd, POLLIN, 0});
  const auto until = std::min(deadline, steady_clock::now() + kBeatEvery);
  const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now()).count();
  ::poll(polled.data(), polled.size(), static_cast<int>(std::max<int64_t>(left, 0)));
}

void AgentHosts::read(Machine& machine, std::vector<TaskEvent>& events) {
  const size_t before = events.size();
  machine.connection.read_complaints();
  machine.connection.stream().read(kEventsAtOnce, events, machine.answers);
  for (size_t i = before; i < events.size();) {
    TaskEvent& event = events[i];
    if (!machine.tasks.contains(event.task)) {  // not its own, or ended before: nobody's business
      events.erase(events.begin() + static_cast<ptrdiff_t>(i));
      continue;
    }
    if (event.host.empty() || event.kind == TaskEvent::Kind::kArrived) event.host = machine.connection.host();
    if (ends_task(event.kind)) machine.tasks.erase(event.task);
    ++i;
  }
  if (machine.leaving && machine.tasks.empty()) machine.connection.stream().close();
  if (!machine.connection.stream().broken() || machine.lost) return;
  machine.lost = true;
  if (machine.tasks.empty()) return;
  const std::string why = machine.connection.why();
  for (const TaskId task : machine.tasks) {
    events.push_back({.kind = TaskEvent::Kind::kLost,
                      .task = task,
                      .host = machine.connection.host(),
                      .text = fmt::format("{} is lost: {}", machine.connection.host(), why)});
  }
  machine.tasks.clear();
}

void AgentHosts::beat(Time now) {
  if (now - last_beat_ < kBeatEvery) return;
  last_beat_ = now;
  for (Machine& machine : hosts_) machine.connection.stream().send(beat_line());
}

AgentHosts::Answers AgentHosts::ask(const std::map<std::string, std::string>& questions, Time deadline) {
  Answers answers;
  for (const auto& [host, question] : questions) {
    AgentConnection* connection = find(host);
    if (connection == nullptr) {
      answers.wrong[host] = "is not connected";
    } else {
      connection->stream().send(question_line(question));
    }
  }
  while (answers.given.size() + answers.wrong.size() < questions.size()) {
    beat(steady_clock::now());
    poll_all(deadline, -1);
    for (Machine& machine : hosts_) {
      const std::string& host = machine.connection.host();
      if (!questions.contains(host) || answers.given.contains(host) || answers.wrong.contains(host)) continue;
      read(machine, pending_);
      if (!machine.answers.empty()) {
        JsonValue answer = std::move(machine.answers.front());
        machine.answers.erase(machine.answers.begin());
        const std::string error = answer["error"].text();
        if (error.empty()) {
          answers.given[host] = std::move(answer);
        } else {
          answers.wrong[host] = error;
        }
      } else if (machine.connection.stream().broken()) {
        answers.wrong[host] = machine.connection.why();
      } else if (steady_clock::now() >= deadline) {
        answers.wrong[host] = "does not answer in time";
      }
    }
  }
  return answers;
}

Result<std::map<std::string, JsonValue>> AgentHosts::ask_all(const std::map<std::string, std::string>& questions,
                                                             Time deadline) {
  Answers answers = ask(questions, deadline);
  if (answers.wrong.empty()) return std::move(answers.given);
  std::vector<std::string> lines;
  for (const auto& [host, text] : answers.wrong) lines.push_back(fmt::format("{}: {}", host, text));
  return unavailable("{}", fmt::join(lines, "\n"));
}

void AgentHosts::start(const std::string& host, const TaskSpec& spec) {
  for (Machine& machine : hosts_) {
    machine.tasks.erase(spec.id);
    if (machine.connection.host() != host) continue;
    machine.tasks.insert(spec.id);
    pending_.push_back({.kind = TaskEvent::Kind::kPlaced, .task = spec.id, .host = host});
    machine.connection.stream().send(start_line(spec));
  }
}

void AgentHosts::release(const ClusterView& view) {
  for (Machine& machine : hosts_) machine.connection.stream().send(view_line(view));
}

void AgentHosts::stop(TaskId task, bool at_once) {
  for (Machine& machine : hosts_) {
    if (machine.tasks.contains(task)) machine.connection.stream().send(stop_line(task, at_once));
  }
}

std::vector<TaskEvent> AgentHosts::wait(Time deadline, int wake_fd) {
  std::vector<TaskEvent> events = std::exchange(pending_, {});
  while (true) {
    beat(steady_clock::now());
    for (Machine& machine : hosts_) read(machine, events);
    if (!events.empty() || steady_clock::now() >= deadline) return events;
    poll_all(deadline, wake_fd);
    pollfd wake{wake_fd, POLLIN, 0};
    if (wake_fd >= 0 && ::poll(&wake, 1, 0) > 0) deadline = steady_clock::now();  // once more for what came with it
  }
}

void AgentHosts::let_go(const std::string& host) {
  for (Machine& machine : hosts_) machine.leaving = machine.leaving || machine.connection.host() == host;
}

bool AgentHosts::is_lost(const std::string& host) {
  AgentConnection* connection = find(host);
  return connection != nullptr && connection->stream().broken().has_value();
}

void AgentHosts::end(Time deadline) {
  for (Machine& machine : hosts_) machine.connection.stream().close();
  for (Machine& machine : hosts_) machine.connection.end(deadline);
  hosts_.clear();
}

}  // namespace pscloud

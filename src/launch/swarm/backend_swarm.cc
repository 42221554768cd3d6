#include "launch/swarm/backend_swarm.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <set>

#include "base/log.h"
#include "launch/swarm/machine_image.h"
#include "launch/swarm/swarm_clean.h"
#include "launch/swarm/swarm_places.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookAtTasks{100};
constexpr milliseconds kLookAtNodes{2000};
constexpr milliseconds kOpenAgain{1000};
constexpr milliseconds kEngineAway{60000};
constexpr milliseconds kSwarmHeardLate{1000};                   // by the swarm's own way from a node to us
constexpr uint64_t kRestOfLogMax = 256 << 20;                   // what the stream had not brought yet
constexpr std::string_view kExitWords = "task: non-zero exit";  // says only what the code says

std::string why_rejected(const std::string& image, const std::string& node, const std::string& why) {
  if (why.find("No such image") == std::string::npos) return why;
  return fmt::format(
      "{} has no image {}, and could not pull it; push it to a registry that the nodes can reach, or load it there "
      "(`pscloud image build --load` does, with ours)",
      node, image);
}

}  // namespace

Result<std::unique_ptr<Backend>> make_swarm_backend(const Cluster& cluster, const std::string&) {
  return std::make_unique<SwarmBackend>(TRY(read_swarm_options(cluster)));
}

Result<EngineAddress> SwarmBackend::find_manager(const std::string& host) const {
  const Host* manager = options_.machines.find(options_.machines.manager);
  return manager == nullptr ? find_engine(host) : engine_of_machine(*manager, options_.machines.ssh_config);
}

Result<> SwarmBackend::connect() {
  if (engine_) return {};
  engine_ = std::make_unique<DockerEngine>(TRY(find_manager(options_.host)));
  streams_ = std::make_unique<HttpStreams>(engine_->address().http);
  return {};
}

Result<> SwarmBackend::check(const Plan& plan) {
  TRY(check_containers(plan, "a swarm"));
  TRY(container_files(plan, kSwarmFileMax));
  TRY(connect());
  const std::string& where = engine_->address().text;
  const JsonValue info = TRY(engine_->get("/info"));
  const JsonValue& swarm = info["Swarm"];
  if (swarm["LocalNodeState"].text() != "active") {
    return invalid(
        "the Docker engine at {} is in no swarm: `docker swarm init` there, or name a manager of one by "
        "--on swarm:host=ssh://user@manager or DOCKER_HOST",
        where);
  }
  if (!swarm["ControlAvailable"].truth()) {
    std::string managers;
    for (const JsonValue& manager : swarm["RemoteManagers"].items()) managers += " " + manager["Addr"].text();
    return invalid("the Docker engine at {} is only a worker of its swarm; name a manager:{}", where, managers);
  }
  if (options_.machines.known() && options_.host_network) TRY(find_places(*engine_, plan, options_, "host"));
  return {};
}

Result<> SwarmBackend::release(const ClusterView&) { return {}; }

// The service stays until the task has ended and its log was read: an engine ends a log with its service, and what a
// program says when it is told to stop would be lost.
Result<> SwarmBackend::stop(TaskId id, bool at_once) {
  const auto found = tasks_.find(id);
  if (found == tasks_.end() || found->second.over || found->second.last) return {};
  Task& task = found->second;
  task.stopping = true;
  if (!task.running) return engine_->remove("/services/" + task.service);
  const char* const signal = at_once ? "SIGKILL" : "SIGTERM";
  if (task.node == own_node_ && !task.container.empty()) {
    const auto sent = engine_->post(fmt::format("/containers/{}/kill", task.container), "", {{"signal", signal}});
    if (sent) return {};
    log_debug("{}: {}", id.text(), sent.error().message);  // it has just ended, say
  } else if (signals_ && signals_->send(id, task.node, task.container, signal, std::chrono::steady_clock::now())) {
    return {};
  }
  return end_by_swarm(task);
}

// The slow way: a swarm ends a task when its service wants to be where no node is. Unlike one whose service is removed
// or scaled down, such a task stays as it ended, with its log. Its engine sends SIGKILL after the grace that the
// service was made with; a swarm knows no way to have it sooner.
Result<> SwarmBackend::end_by_swarm(Task& task) {
  if (std::exchange(task.to_nowhere, true)) return {};
  const std::string path = "/services/" + task.service;
  const JsonValue service = TRY(engine_->get(path));
  const std::string version = fmt::to_string(service["Version"]["Index"].integer());
  if (const auto updated = engine_->post(path + "/update", task.nowhere, {{"version", version}}); !updated) {
    log_warning("{}; its last lines may be lost", updated.error().message);
    return engine_->remove(path);
  }
  return {};
}

void SwarmBackend::send_signals(Time now) {
  if (!signals_) return;
  signals_->begin(now);
  for (const TaskId id : signals_->take_failed()) {
    Task& task = tasks_.at(id);
    if (task.over || task.last) continue;
    if (const auto told = end_by_swarm(task); !told) log_warning("{}: {}", id.text(), told.error().message);
  }
}

void SwarmBackend::open_logs(Time now) {
  for (auto& [id, task] : tasks_) {
    if (task.stream != 0 || task.over || now < task.open_again) continue;
    task.log.begin_stream();
    task.stream = streams_->open(engine_->request(
        fmt::format("/services/{}/logs", task.service),
        {{"follow", "1"}, {"stdout", "1"}, {"stderr", "1"}, {"timestamps", "1"}, {"since", task.log.since()}}));
  }
}

void SwarmBackend::take_log(HttpStreams::Event event, Events& events) {
  const auto found = std::ranges::find_if(tasks_, [&](const auto& each) { return each.second.stream == event.stream; });
  if (found == tasks_.end()) return;
  Task& task = found->second;
  bool broken = event.ended;
  if (!event.bytes.empty() && event.status == 200) broken = !task.log.take(event.bytes, events) || broken;
  if (!broken) return;
  streams_->close(task.stream);
  task.stream = 0;
  task.open_again = std::chrono::steady_clock::now() + kOpenAgain;
}

// A stream that is followed does not tell where it ends: all that there is, is asked for once more. Of a task that is
// lost, or whose service is gone, there is nobody to ask.
void SwarmBackend::read_rest_of_log(TaskId id, Task& task, Events& events) {
  if (task.running && task.last->kind == TaskEvent::Kind::kExited) {
    const auto rest = engine_->get_bytes(
        fmt::format("/services/{}/logs", task.service),
        {{"stdout", "1"}, {"stderr", "1"}, {"timestamps", "1"}, {"since", task.log.since()}}, kRestOfLogMax);
    task.log.begin_stream();
    if (!rest || !task.log.take(*rest, events)) log_warning("{}: the end of its log cannot be read", id.text());
  }
  streams_->close(task.stream);
  task.stream = 0;
  task.log.end(events);
}

void SwarmBackend::finish_ended(Events& events) {
  for (auto& [id, task] : tasks_) {
    if (task.over || !task.last) continue;
    read_rest_of_log(id, task, events);
    task.over = true;
    sampler_->forget(id);
    events.push_back(*std::move(task.last));
    // At once: a swarm that elects a new manager would start it again. What fails here is found by clean().
    if (const auto removed = engine_->remove("/services/" + task.service); !removed) {
      log_warning("{}: {}", id.text(), removed.error().message);
    }
  }
}

void SwarmBackend::take_end(TaskId id, Task& task, const JsonValue& state, Events& events) {
  const JsonValue& status = state["Status"];
  const std::string& why = status["Err"].text();
  const int64_t code = status["ContainerStatus"]["ExitCode"].integer();
  const std::string& word = status["State"].text();
  if (word == "complete" || (word == "shutdown" && task.stopping)) {
    task.last = {.kind = TaskEvent::Kind::kExited, .task = id, .code = static_cast<int>(code)};
    return;
  }
  if (code > 0) {
    if (!why.empty() && !why.starts_with(kExitWords)) {
      events.push_back({.kind = TaskEvent::Kind::kLine, .task = id, .text = "pscloud: " + why, .is_stderr = true});
    }
    task.last = {.kind = TaskEvent::Kind::kExited,
                 .task = id,
                 .code = static_cast<int>(code),
                 .ended_unix_us = task.stopping ? 0 : parse_unix_us(status["Timestamp"].text()),
                 .heard_late = kSwarmHeardLate};
    return;
  }
  const std::string reason = word == "orphaned" || word == "shutdown"
                                 ? fmt::format("{} has given it up", nodes_[task.node])
                                 : why_rejected(plan_->find(id)->image, nodes_[task.node], why);
  task.last = {.kind = TaskEvent::Kind::kLost, .task = id, .text = reason};
}

// Its node's engine tells what it uses, if we reach that: all of machines that we know, else only the one we speak to.
void SwarmBackend::watch_container(TaskId id, const Task& task) {
  if (task.container.empty()) return;
  if (const Host* machine = options_.machines.find(nodes_[task.node])) {
    sampler_->watch(id, task.container, task.node, engine_of_machine(*machine, options_.machines.ssh_config));
  } else if (task.node == own_node_) {
    if (const auto engine = find_manager(options_.host)) sampler_->watch(id, task.container, task.node, *engine);
  }
}

// Now, since a signal that is sent later should find the way known.
void SwarmBackend::meet_node(TaskId id, const Task& task) {
  if (!signals_ || task.node == own_node_ || task.container.empty()) return;
  const std::string& named = plan_->find(id)->image;
  const bool is_ours = !own_image_id_.empty() && is_own_image(named);
  signals_->meet(task.node, task.container, is_ours ? own_image_id_ : named, std::chrono::steady_clock::now());
}

void SwarmBackend::take_state(TaskId id, Task& task, const JsonValue& state, Events& events) {
  const std::string& word = state["Status"]["State"].text();
  task.container = state["Status"]["ContainerStatus"]["ContainerID"].text();
  if (task.node.empty() && !state["NodeID"].text().empty()) {
    task.node = state["NodeID"].text();
    events.push_back({.kind = TaskEvent::Kind::kPlaced, .task = id, .host = nodes_[task.node]});
  }
  // Who has already ended when it is first looked at was there too.
  const bool has_run =
      word == "running" || word == "complete" || state["Status"]["ContainerStatus"]["ExitCode"].integer() > 0;
  if (!task.running && has_run) {
    task.running = true;
    watch_container(id, task);
    if (!is_over(word)) meet_node(id, task);
    events.push_back(
        {.kind = TaskEvent::Kind::kArrived, .task = id, .host = nodes_[task.node], .address = task.address});
    events.push_back({.kind = TaskEvent::Kind::kRunning, .task = id, .host = nodes_[task.node]});
  }
  if (is_over(word)) return take_end(id, task, state, events);
  const std::string& trouble = state["Status"]["Err"].text();
  if (word == "pending" && !trouble.empty() && trouble != task.trouble) {
    task.trouble = trouble;
    events.push_back({.kind = TaskEvent::Kind::kLine,
                      .task = id,
                      .text = fmt::format("pscloud: the swarm has no place for it yet: {}", trouble),
                      .is_stderr = true});
  }
}

Result<> SwarmBackend::look_at_tasks(Events& events) {
  const JsonValue states = TRY(
      engine_->get("/tasks", {{"filters", engine_filter("label", fmt::format("{}={}", kSwarmJobLabel, plan_->job))}}));
  if (signals_) signals_->look(states, std::chrono::steady_clock::now());
  std::set<TaskId> seen;
  for (const JsonValue& state : states.items()) {
    const auto id = ids_.find(state["ServiceID"].text());
    if (id == ids_.end()) continue;
    Task& task = tasks_.at(id->second);
    if (task.number.empty()) task.number = state["ID"].text();
    if (task.over || task.last || state["ID"].text() != task.number) continue;
    seen.insert(id->second);
    take_state(id->second, task, state, events);
  }
  for (auto& [id, task] : tasks_) {
    if (task.over || task.last || seen.contains(id)) continue;
    if (task.stopping) {
      task.last = {.kind = TaskEvent::Kind::kExited, .task = id, .signal = SIGTERM};
    } else if (!task.number.empty()) {
      task.last = {.kind = TaskEvent::Kind::kLost, .task = id, .text = "somebody else has removed its service"};
    }
  }
  return {};
}

// A swarm waits a day before it says that the tasks of a node are gone.
Result<> SwarmBackend::look_at_nodes() {
  const JsonValue nodes = TRY(engine_->get("/nodes"));
  std::set<std::string> down;
  for (const JsonValue& node : nodes.items()) {
    nodes_[node["ID"].text()] = name_of_node(node);
    if (node["Status"]["State"].text() == "down") down.insert(node["ID"].text());
  }
  for (auto& [id, task] : tasks_) {
    if (task.over || task.last || !down.contains(task.node)) continue;
    task.last = {.kind = TaskEvent::Kind::kLost, .task = id, .text = fmt::format("{} is down", nodes_[task.node])};
  }
  return {};
}

void SwarmBackend::take_notices(Events& events) {
  if (!notices_) return;
  for (const SpotNotices::Notice& notice : notices_->take()) {
    for (const auto& [id, task] : tasks_) {
      const std::string& node = task.node.empty() ? places_.at(id.text()).node : task.node;  // it may not be there yet
      if (task.over || nodes_[node] != notice.host) continue;
      events.push_back({.kind = TaskEvent::Kind::kNotice,
                        .task = id,
                        .host = notice.host,
                        .text = notice.action,
                        .seconds = notice.seconds});
    }
  }
}

// A swarm without a leader, or a manager that is started again, may take a while; what runs goes on meanwhile.
Result<> SwarmBackend::look_if_due(Time now, Events& events) {
  Result<> looked;
  if (now >= look_at_tasks_) {
    looked = look_at_tasks(events);
    look_at_tasks_ = std::chrono::steady_clock::now() + kLookAtTasks;
    if (looked) answered_at_ = now;
  }
  if (looked && now >= look_at_nodes_) {
    looked = look_at_nodes();
    look_at_nodes_ = std::chrono::steady_clock::now() + kLookAtNodes;
  }
  if (looked || now - answered_at_ < kEngineAway) return {};
  return looked;
}

Result<std::vector<TaskEvent>> SwarmBackend::wait(Time deadline, int wake_fd) {
  Events events;
  while (true) {
    const Time now = std::chrono::steady_clock::now();
    send_signals(now);
    TRY(look_if_due(now, events));
    finish_ended(events);
    take_notices(events);
    for (TaskEvent& sample : sampler_->take()) events.push_back(std::move(sample));
    open_logs(now);
    const Time until = events.empty() ? std::min(deadline, look_at_tasks_) : now;
    auto arrived = streams_->wait(until, wake_fd);
    for (HttpStreams::Event& event : arrived) take_log(std::move(event), events);
    // Less than asked for and nothing has come: it was woken.
    const Time then = std::chrono::steady_clock::now();
    if (!events.empty() || then >= deadline || (arrived.empty() && then < until)) return events;
  }
}

Result<std::vector<std::string>> SwarmBackend::clean(const Plan& plan, Ledger& ledger) {
  streams_.reset();
  signals_.reset();
  engine_.reset();
  notices_.reset();
  sampler_.reset();
  const std::string& config = options_.machines.ssh_config;
  if (options_.machines.known() && !config.empty() && ::access(config.c_str(), F_OK) != 0) {
    // `cluster down` removes what it has of a cluster when nothing is left of its machines.
    for (const LedgerEntry& entry : ledger.remaining()) TRY(ledger.gone(entry.number));
    return std::vector<std::string>();
  }
  return clean_swarm(plan, ledger, [this](const std::string& host) { return find_manager(host); });
}

Result<std::vector<std::string>> SwarmBackend::shell(const Plan& plan, TaskId id) {
  TRY(connect());
  const std::string name = swarm_name(plan, id.text());
  const JsonValue states = TRY(engine_->get("/tasks", {{"filters", engine_filter("service", name)}}));
  for (const JsonValue& state : states.items()) {
    if (state["Status"]["State"].text() != "running") continue;
    const std::string& container = state["Status"]["ContainerStatus"]["ContainerID"].text();
    const JsonValue info = TRY(engine_->get("/info"));
    const std::string& node = state["NodeID"].text();
    const JsonValue where = TRY(engine_->get("/nodes/" + node));
    if (const Host* machine = options_.machines.find(name_of_node(where))) {
      return machine_shell(*machine, options_.machines.ssh_config, container);
    }
    std::vector<std::string> inside{"docker", "exec", "-it", container, "sh"};
    if (info["Swarm"]["NodeID"].text() == node) {
      inside.insert(inside.begin() + 1, {"--host", engine_->address().text});
      return inside;
    }
    std::vector<std::string> command{"ssh", "-t", "--", where["Status"]["Addr"].text()};
    command.insert(command.end(), inside.begin(), inside.end());
    return command;
  }
  return not_found("{} does not run", id.text());
}

}  // namespace pscloud

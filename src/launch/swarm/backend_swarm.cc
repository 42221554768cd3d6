#include "launch/swarm/backend_swarm.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <set>

#include "base/log.h"
#include "launch/bundle/image_archive.h"
#include "launch/cloud/user_data.h"
#include "launch/swarm/machine_image.h"
#include "launch/swarm/registry_auth.h"
#include "launch/swarm/swarm_clean.h"
#include "launch/swarm/swarm_places.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookAtTasks{100};
constexpr milliseconds kLookAtNodes{2000};
constexpr milliseconds kOpenAgain{1000};
constexpr milliseconds kEngineAway{60000};
constexpr uint64_t kRestOfLogMax = 256 << 20;                   // what the stream had not brought yet
constexpr uint64_t kSwarmFileMax = 500 * 1000;                  // of a swarm's secrets and configs
constexpr const char* kNowhere = "nowhere";                     // no node has this id
constexpr std::string_view kExitWords = "task: non-zero exit";  // says only what the code says

ClusterView view_of(const Plan& plan, const std::map<std::string, SwarmPlace>& places) {
  ClusterView view;
  view.job = plan.job;
  for (const PlannedTask& task : plan.tasks) {
    view.tasks.push_back({task.spec.id, places.at(task.spec.id.text()).address});
  }
  std::ranges::sort(view.tasks, {}, &TaskAddress::id);
  return view;
}

// What it writes to files without a folder stays for the next run. What is temporary may be large, too.
void work_in_cache(ContainerTask& container) {
  container.folder = kMachineCache;
  const auto is_said = [](const auto& variable) { return variable.first == "TMPDIR"; };
  if (std::ranges::none_of(container.variables, is_said)) container.variables.emplace_back("TMPDIR", kMachineCache);
}

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

Result<std::string> SwarmBackend::preview(const Plan& plan) {
  std::map<std::string, SwarmPlace> places;
  for (const PlannedTask& task : plan.tasks) {
    const std::string name = task.spec.id.text();
    places[name] = {options_.host_network ? "host" : swarm_name(plan, "network"),
                    "",
                    {options_.host_network ? "NODE" : name, options_.port}};
  }
  const ClusterView view = view_of(plan, places);
  std::string text;
  for (const PlannedTask& task : plan.tasks) {
    const ContainerTask container = container_task(plan, view, task);
    std::vector<SwarmFile> secrets;
    for (const auto& file : container.secrets) secrets.push_back({"SECRET", "SECRET", file.path});
    text += swarm_service_json(plan, task, container, options_, places[container.name], secrets, {}) + "\n";
  }
  return text;
}

// `kind`: "secret" or "config".
Result<std::vector<SwarmFile>> SwarmBackend::make_files(const Plan& plan, const std::string& kind,
                                                        const std::vector<ContainerTask::File>& files) {
  std::vector<SwarmFile> made;
  for (const ContainerTask::File& file : files) {
    SwarmFile& known = secrets_[kind + file.content];
    if (known.id.empty()) {
      known.name = swarm_name(plan, fmt::format("{}-{}", kind, secrets_.size()));
      const JsonValue answer =
          TRY(engine_->post(fmt::format("/{}s/create", kind), swarm_data_json(plan, known.name, file.content))
                  .at(file.path));
      known.id = answer["ID"].text();
    }
    made.push_back({known.id, known.name, file.path});
  }
  return made;
}

Result<> SwarmBackend::make_service(const PlannedTask& planned, const ClusterView& view, const SwarmPlace& place,
                                    const std::vector<SwarmFile>& configs) {
  ContainerTask container = container_task(*plan_, view, planned);
  if (!own_image_id_.empty() && is_own_image(container.image)) {
    container.image = own_image_id_;
    const bool has_cache =
        std::ranges::find(options_.mounts, kMachineCache, &ContainerMount::target) != options_.mounts.end();
    if (has_cache) work_in_cache(container);
  }
  const auto secrets = TRY(make_files(*plan_, "secret", container.secrets));
  const std::string spec = swarm_service_json(*plan_, planned, container, options_, place, secrets, configs);
  const HttpHeaders auth{{"x-registry-auth", TRY(registry_auth(split_image_name(container.image).registry))}};
  const JsonValue answer = TRY(engine_->post("/services/create", spec, {}, auth).at(planned.spec.id.text()));
  Task task(planned.spec.id);
  task.address = place.address;
  task.service = answer["ID"].text();
  SwarmPlace nowhere = place;
  nowhere.node = kNowhere;
  task.nowhere = swarm_service_json(*plan_, planned, container, options_, nowhere, secrets, configs);
  ids_[task.service] = planned.spec.id;
  tasks_.emplace(planned.spec.id, std::move(task));
  return {};
}

// To the machines that have a task of it; to all if the swarm chooses.
Result<> SwarmBackend::bring_own_image(const Plan& plan) {
  const auto ours = [](const PlannedTask& task) { return is_own_image(task.image); };
  const auto first = std::ranges::find_if(plan.tasks, ours);
  if (first == plan.tasks.end()) return {};
  std::vector<Host> machines;
  for (const Host& host : options_.machines.hosts) {
    const auto is_there = [&](const PlannedTask& task) { return ours(task) && task.host == host.name; };
    if (!options_.host_network || std::ranges::any_of(plan.tasks, is_there)) machines.push_back(host);
  }
  own_image_id_ = TRY(load_own_image(machines, options_.machines.ssh_config, first->image));
  return {};
}

Result<> SwarmBackend::start(const Plan& plan, Ledger& ledger) {
  TRY(connect());
  plan_ = &plan;
  if (options_.machines.known()) {
    if (options_.machines.idle_s > 0) keeper_ = std::make_unique<MachineKeeper>(options_.machines);
    TRY(bring_own_image(plan));
  }
  const auto files = TRY(container_files(plan, kSwarmFileMax));
  TRY(ledger.intend(kSwarmEntry, {{"host", engine_->address().text}, {"job", plan.job}}));
  own_node_ = TRY(engine_->get("/info"))["Swarm"]["NodeID"].text();
  const JsonValue nodes = TRY(engine_->get("/nodes"));
  for (const JsonValue& node : nodes.items()) nodes_[node["ID"].text()] = name_of_node(node);
  std::string network;
  if (!options_.host_network) {
    network = TRY(engine_->post("/networks/create", swarm_network_json(plan)))["Id"].text();
  }
  const auto configs = TRY(make_files(plan, "config", files));
  const auto places = TRY(find_places(*engine_, plan, options_, network));
  const ClusterView view = view_of(plan, places);
  for (const PlannedTask& task : plan.tasks) {
    TRY(make_service(task, view, places.at(task.spec.id.text()), configs));
  }
  sampler_ = std::make_unique<SwarmSampler>();
  if (!options_.socket.empty()) signals_ = std::make_unique<NodeSignals>(*engine_, plan, options_.socket);
  answered_at_ = std::chrono::steady_clock::now();
  open_logs(answered_at_);
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
    task.last = {.kind = TaskEvent::Kind::kExited, .task = id, .code = static_cast<int>(code)};
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
  keeper_.reset();
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
    std::vector<std::string> command{"ssh", "-t", where["Status"]["Addr"].text()};
    command.insert(command.end(), inside.begin(), inside.end());
    return command;
  }
  return not_found("{} does not run", id.text());
}

}  // namespace pscloud

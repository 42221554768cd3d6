#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "launch/bundle/image_archive.h"
#include "launch/cloud/user_data.h"
#include "launch/swarm/backend_swarm.h"
#include "launch/swarm/machine_image.h"
#include "launch/swarm/registry_auth.h"
#include "launch/swarm/swarm_clean.h"
#include "launch/swarm/swarm_places.h"

// How the back end of a swarm begins tasks; backend_swarm.cc follows them.
namespace pscloud {
namespace {

constexpr const char* kNowhere = "nowhere";  // no node has this id

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

}  // namespace

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
  if (!options_.host_network) text += swarm_network_json(plan) + "\n";
  // As make_files() counts and names them; what is in them is not shown.
  std::map<std::string, SwarmFile> files;
  const auto file_of = [&](const std::string& kind, const std::string& content, const std::string& path) {
    SwarmFile& known = files[kind + content];
    if (known.name.empty()) {
      known = {"ID", swarm_name(plan, fmt::format("{}-{}", kind, files.size())), ""};
      text += swarm_data_json(plan, known.name, "") + "\n";
    }
    return SwarmFile{known.id, known.name, path};
  };
  std::vector<SwarmFile> configs;
  for (const std::string& file : plan.files) {
    const std::string name = std::filesystem::path(file).filename().string();
    configs.push_back(file_of("config", file, fmt::format("{}/{}", kContainerFiles, name)));
  }
  for (const PlannedTask& task : plan.tasks) {
    if (options_.host_network) text += swarm_data_json(plan, swarm_port_name("PORT"), "") + "\n";
    const ContainerTask container = container_task(plan, view, task);
    std::vector<SwarmFile> secrets;
    for (const auto& file : container.secrets) secrets.push_back(file_of("secret", file.content, file.path));
    text += swarm_service_json(plan, task, container, options_, places[container.name], secrets, configs) + "\n";
  }
  if (options_.socket.empty()) return text;
  // What NodeSignals makes on a node when a program there is to hear a signal.
  const SwarmFile program{"ID", swarm_name(plan, "engine-call"), "/pscloud-engine-call"};
  text += swarm_data_json(plan, program.name, "") + "\n";
  return text + swarm_call_json(plan, "call-1", "NODE", "IMAGE", program, options_.socket, {}) + "\n";
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

Result<> SwarmBackend::make_service(const PlannedTask& planned, const ClusterView& view) {
  const SwarmPlace& place = places_.at(planned.spec.id.text());
  ContainerTask container = container_task(*plan_, view, planned);
  const bool has_cache =
      std::ranges::find(options_.mounts, kMachineCache, &ContainerMount::target) != options_.mounts.end();
  if (!own_image_id_.empty() && is_own_image(container.image)) {
    container.image = own_image_id_;
    if (has_cache) work_in_cache(container);
  }
  const Host* machine = options_.machines.find(planned.host);
  if (has_cache && machine != nullptr && machine->spot) {
    container.variables.emplace_back(kNoticeVariable, kMachineNotice);
  }
  const auto secrets = TRY(make_files(*plan_, "secret", container.secrets));
  const std::string spec = swarm_service_json(*plan_, planned, container, options_, place, secrets, configs_);
  const HttpHeaders auth{{"x-registry-auth", TRY(registry_auth(split_image_name(container.image).registry))}};
  const JsonValue answer = TRY(engine_->post("/services/create", spec, {}, auth).at(planned.spec.id.text()));
  Task task(planned.spec.id);
  task.address = place.address;
  task.service = answer["ID"].text();
  SwarmPlace nowhere = place;
  nowhere.node = kNowhere;
  task.nowhere = swarm_service_json(*plan_, planned, container, options_, nowhere, secrets, configs_);
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
    TRY(bring_own_image(plan));
    notices_ = std::make_unique<SpotNotices>(options_.machines.ssh_config);
    for (const PlannedTask& task : plan.tasks) {
      if (const Host* machine = options_.machines.find(task.host)) notices_->listen(*machine);
    }
  }
  const auto files = TRY(container_files(plan, kSwarmFileMax));
  TRY(ledger.intend(kSwarmEntry, {{"host", engine_->address().text}, {"job", plan.job}}));
  own_node_ = TRY(engine_->get("/info"))["Swarm"]["NodeID"].text();
  TRY(name_nodes());
  if (!options_.host_network) {
    network_ = TRY(engine_->post("/networks/create", swarm_network_json(plan)))["Id"].text();
  }
  configs_ = TRY(make_files(plan, "config", files));
  places_ = TRY(find_places(*engine_, plan, options_, network_));
  const ClusterView view = view_of(plan, places_);
  for (const PlannedTask& task : plan.tasks) {
    TRY(make_service(task, view));
  }
  sampler_ = std::make_unique<SwarmSampler>();
  if (!options_.socket.empty()) signals_ = std::make_unique<NodeSignals>(*engine_, plan, options_.socket);
  answered_at_ = std::chrono::steady_clock::now();
  open_logs(answered_at_);
  return {};
}

Result<> SwarmBackend::name_nodes() {
  const JsonValue nodes = TRY(engine_->get("/nodes"));
  for (const JsonValue& node : nodes.items()) nodes_[node["ID"].text()] = name_of_node(node);
  return {};
}

// Its service has gone with its first end; all else that it had is there.
Result<> SwarmBackend::restart(const Plan& plan, const PlannedTask& task, const Host& host, Ledger&) {
  if (!options_.machines.known() || !options_.host_network) {
    return invalid("{}: in a swarm whose machines are not known here no task moves", task.spec.id.text());
  }
  if (options_.machines.find(host.name) == nullptr) {
    options_.machines.hosts.push_back(host);
  }
  Plan one = plan;
  one.tasks = {task};
  TRY(bring_own_image(one));
  TRY(name_nodes());
  for (auto& [name, place] : TRY(find_places(*engine_, one, options_, network_))) places_[name] = place;
  tasks_.erase(task.spec.id);
  TRY(make_service(task, view_of(plan, places_)));
  notices_->listen(host);
  return {};
}

}  // namespace pscloud

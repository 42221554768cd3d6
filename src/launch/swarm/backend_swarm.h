#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/http_client_streams.h"
#include "launch/backend.h"
#include "launch/swarm/docker_engine.h"
#include "launch/swarm/node_signals.h"
#include "launch/swarm/spot_notices.h"
#include "launch/swarm/swarm_log.h"
#include "launch/swarm/swarm_sampler.h"
#include "launch/swarm/swarm_spec.h"

namespace pscloud {

// An existing Docker Swarm, through the engine of one of its managers: a service for each task, which is found by its
// labels and removed as soon as its task has ended. Addresses are names on an overlay network of the job's own, or
// ports of the nodes. Beside the services a job has that network, secrets, and configs for its files; nothing else is
// touched.
class SwarmBackend final : public Backend {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit SwarmBackend(SwarmOptions options) : options_(std::move(options)) {}

  Result<> check(const Plan& plan) override;
  Result<std::string> preview(const Plan& plan) override;
  Result<> start(const Plan& plan, Ledger& ledger) override;
  Result<> release(const ClusterView& view) override;
  Result<> stop(TaskId task, bool at_once) override;
  Result<> restart(const Plan& plan, const PlannedTask& task, const Host& host, Ledger& ledger) override;
  Result<std::vector<TaskEvent>> wait(Time deadline, int wake_fd) override;
  Result<std::vector<std::string>> clean(const Plan& plan, Ledger& ledger) override;
  Result<std::vector<std::string>> shell(const Plan& plan, TaskId task) override;

 private:
  struct Task {
    explicit Task(TaskId id) : log(id) {}

    Address address = {};
    std::string service = {};    // its id
    std::string nowhere = {};    // the service again, with a place that there is not
    std::string number = {};     // the id of its one task in the swarm; empty: not seen yet
    std::string container = {};  // on that node
    std::string node = {};
    std::string trouble = {};  // why it waits
    SwarmLog log;
    uint64_t stream = 0;   // of its log; 0: none is open
    Time open_again = {};  // when it is 0
    bool running = false;
    std::optional<TaskEvent> last = {};  // it has ended; told once its log has come
    bool stopping = false;               // it was told to end
    bool to_nowhere = false;             // by the swarm
    bool over = false;                   // its end was told
  };
  using Events = std::vector<TaskEvent>;

  Result<EngineAddress> find_manager(const std::string& host) const;
  Result<> connect();
  Result<> bring_own_image(const Plan& plan);
  Result<std::vector<SwarmFile>> make_files(const Plan& plan, const std::string& kind,
                                            const std::vector<ContainerTask::File>& files);
  Result<> make_service(const PlannedTask& planned, const ClusterView& view);
  Result<> name_nodes();

  void open_logs(Time now);
  void take_log(HttpStreams::Event event, Events& events);
  void read_rest_of_log(TaskId id, Task& task, Events& events);
  void finish_ended(Events& events);
  Result<> end_by_swarm(Task& task);
  void send_signals(Time now);
  Result<> look_at_tasks(Events& events);
  void watch_container(TaskId id, const Task& task);
  void meet_node(TaskId id, const Task& task);
  void take_state(TaskId id, Task& task, const JsonValue& state, Events& events);
  void take_end(TaskId id, Task& task, const JsonValue& state, Events& events);
  Result<> look_at_nodes();
  void take_notices(Events& events);
  Result<> look_if_due(Time now, Events& events);

  static constexpr uint64_t kSwarmFileMax = 500 * 1000;  // of a swarm's secrets and configs

  SwarmOptions options_;
  std::unique_ptr<DockerEngine> engine_;
  std::unique_ptr<HttpStreams> streams_;
  std::unique_ptr<SpotNotices> notices_;   // of machines that we know; from start() on
  std::unique_ptr<SwarmSampler> sampler_;  // from start() on
  std::unique_ptr<NodeSignals> signals_;   // from start() on, unless the user does not want it
  std::string own_image_id_;               // as engines call it; empty: it was not brought
  const Plan* plan_ = nullptr;             // borrowed at start()
  std::string own_node_;                   // of the engine that we speak to
  std::map<TaskId, Task> tasks_;
  std::map<std::string, std::string> nodes_;  // id: host name
  std::string network_;                       // the id of the job's own; empty: the nodes'
  std::map<std::string, SwarmPlace> places_;  // by task
  std::vector<SwarmFile> configs_;            // files of the job
  std::map<std::string, SwarmFile> secrets_;  // by content, since many tasks have the same
  std::map<std::string, TaskId> ids_;         // by the id of the service
  Time look_at_tasks_ = {};
  Time look_at_nodes_ = {};
  Time answered_at_ = {};
};

inline constexpr BackendOption kSwarmOptions[] = {
    {"host", "the engine of a manager: unix:///..., ssh://user@host, tcp://host:2376 [DOCKER_HOST]"},
    {"network", "overlay: one of the job's own; host: the nodes' own [overlay]"},
    {"port", "of each task on the overlay network [20000]"},
    {"user", "of the programs, and who may read their secrets: numbers, 1000:1000 [the image's]"},
    {"mount", "SOURCE:/PATH or SOURCE:/PATH:ro, a path of the nodes or a volume; may be said again"},
    {"manager", "the name of one of the hosts of the cluster file, which are its nodes and reached by ssh"},
    {"ssh_config", "a file for ssh -F, with manager"},
    {"idle", "seconds after which the hosts end themselves unless they hear a word, with manager"},
    {"socket", "of the engines on their nodes, by which tasks get SIGTERM at once; off [/var/run/docker.sock]"},
    {"init", "off: the program is process 1, which gets no SIGTERM unless it asks for it [on]"},
};
Result<std::unique_ptr<Backend>> make_swarm_backend(const Cluster& cluster, const std::string& run_folder);

}  // namespace pscloud

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "io/http_client_streams.h"
#include "launch/backend.h"
#include "launch/kubernetes/kube_api.h"
#include "launch/kubernetes/kube_log.h"

namespace pscloud {

// A Kubernetes cluster, through its API: the objects of kube_manifest.h, all in one name space and with the job's
// label.
class KubernetesBackend final : public Backend {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit KubernetesBackend(KubeOptions options) : options_(std::move(options)) {}

  Result<> check(const Plan& plan) override;
  Result<std::string> preview(const Plan& plan) override;
  Result<> start(const Plan& plan, Ledger& ledger) override;
  Result<> release(const ClusterView& view) override;
  Result<> stop(TaskId task, bool at_once) override;
  Result<std::vector<TaskEvent>> wait(Time deadline, int wake_fd) override;
  Result<std::vector<std::string>> clean(const Plan& plan, Ledger& ledger) override;
  Result<std::vector<std::string>> shell(const Plan& plan, TaskId task) override;

 private:
  struct Pod {
    explicit Pod(TaskId id) : log(id) {}

    Address address = {};
    std::string name = {};  // empty: not seen yet
    std::string node = {};
    std::string trouble = {};  // why it waits
    KubeLog log;
    uint64_t stream = 0;   // of its log; 0: none is open
    Time open_again = {};  // when it is 0
    bool log_ended = false;
    bool running = false;
    bool stopping = false;
    std::optional<TaskEvent> last = {};  // it has ended; told once its log has, at `finish_at` at the latest
    Time ended_seen = {};
    Time finish_at = {};
    bool over = false;
  };
  using Events = std::vector<TaskEvent>;

  Result<> connect();
  void open_logs(Time now);
  void take_log(const HttpStreams::Event& event, Events& events);
  Result<> look_at_pods(Events& events);
  void take_pod(TaskId id, Pod& pod, const JsonValue& state, Events& events);
  void take_container(TaskId id, Pod& pod, const JsonValue& status, Events& events);
  void take_trouble(TaskId id, Pod& pod, const std::string& trouble, Events& events);
  void finish_soon(TaskId id, Pod& pod, TaskEvent last);
  void finish_due(Time now, Events& events);

  const KubeOptions options_;
  std::unique_ptr<KubeApi> api_;
  std::unique_ptr<HttpStreams> streams_;
  const Plan* plan_ = nullptr;  // borrowed at start()
  std::map<TaskId, Pod> pods_;
  std::set<TaskRole> removed_;  // whose controller is gone: pods that are removed stay away
  Time look_at_pods_ = {};
  Time answered_at_ = {};
};

inline constexpr BackendOption kKubernetesOptions[] = {
    {"kubeconfig", "a file [KUBECONFIG, ~/.kube/config, or the account of the pod this runs in]"},
    {"context", "of the kubeconfig [its current one]"},
    {"namespace", "where all is made [the context's]"},
    {"server", "of the API, in place of a kubeconfig; http://127.0.0.1:8001 of `kubectl proxy`"},
    {"token_file", "with server="},
    {"ca_file", "with server="},
    {"port", "of each task [20000]"},
    {"user", "of the programs, and who may read their secrets: numbers, 1000:1000 [the image's]"},
    {"mount", "SOURCE:/PATH or SOURCE:/PATH:ro, a path of the nodes or a volume claim; may be said again"},
    {"pull", "the image: always, missing or never [missing]"},
};
Result<std::unique_ptr<Backend>> make_kubernetes_backend(const Cluster& cluster, const std::string& run_folder);

}  // namespace pscloud

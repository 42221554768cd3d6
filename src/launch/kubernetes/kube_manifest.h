#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/backend.h"
#include "launch/swarm/container_task.h"

namespace pscloud {

// What a Kubernetes cluster is asked for. Pure.

inline constexpr const char* kKubeJobLabel = "pscloud.job";
inline constexpr const char* kKubeRoleLabel = "pscloud.role";
inline constexpr const char* kKubeContainer = "task";

struct KubeOptions {
  std::string kubeconfig;  // a file; empty: KUBECONFIG, ~/.kube/config, or that of the pod we are in
  std::string context;     // of it; empty: the current one
  std::string server;      // instead of a kubeconfig
  std::string token_file;
  std::string ca_file;
  std::string name_space;  // empty: that of the context, else "default"
  std::string user;        // of the programs, as numbers "1000:1000"; empty: the image's
  std::string pull = "IfNotPresent";
  uint16_t port = 20000;
  std::vector<ContainerMount> mounts;  // volumes are claims
};
Result<KubeOptions> read_kube_options(const Cluster& cluster);

// Names of things: "clicks-j0123456789a", or with "-server" behind it. At most 50 characters, unique as the job is.
std::string kube_name(const Plan& plan, std::string_view thing = {});

// Where the tasks will be: each pod has a name of its own below the headless service.
ClusterView kube_view(const Plan& plan, const KubeOptions& options);

// One thing to be made.
struct KubeObject {
  std::string collection;  // of its kind, behind the name space: "services", and in front of it the API
  std::string api;         // "/api/v1", "/apis/apps/v1", "/apis/batch/v1"
  std::string json;
};

// In the order to make them: a headless Service, a Secret for each role and one for the job's files, a StatefulSet for
// the scheduler and for the servers, which live until they are stopped, an Indexed Job for those that come to an end.
// All have the job's label. kInvalid if the tasks of a role differ in more than their number: they come from one
// template. `hide`: secrets are left out.
Result<std::vector<KubeObject>> kube_objects(const Plan& plan, const KubeOptions& options,
                                             const std::vector<ContainerTask::File>& files, bool hide);

// The same as one List, for kubectl apply.
std::string kube_list(const std::vector<KubeObject>& objects);

// Texts that are alike but for their position, 0, 1, ...: one text with $(NAME) in place of that number, everything
// else literal. Nothing if they are not.
std::optional<std::string> index_template(const std::vector<std::string>& texts, std::string_view name);

}  // namespace pscloud

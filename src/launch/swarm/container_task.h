#pragma once

#include <string>
#include <vector>

#include "launch/plan.h"
#include "launch/task.h"

namespace pscloud {

// A time as engines and clusters say it, "2026-11-18T06:37:00.123456789Z", in microseconds since 1970; 0 if it is none.
int64_t parse_unix_us(const std::string& time);

// A task as a container of its image, which stays as it is: what the user says is behind the image's own ENTRYPOINT,
// and if he says nothing the image's own CMD is. Addresses are known before anything runs. Pure.
struct ContainerTask {
  std::string name;  // "worker-3"
  std::string image;
  std::vector<std::string> arguments;  // empty: the image's own
  Variables variables;                 // each name once
  std::string folder = {};             // where it works; empty: where the image says
  struct File {
    std::string path;
    std::string content;
    bool operator==(const File&) const = default;
  };
  std::vector<File> secrets;  // for the task alone to read
};
ContainerTask container_task(const Plan& plan, const ClusterView& view, const PlannedTask& task);

// Where secrets are, and files that the job copies; the latter is where a task works if there are any.
inline constexpr const char* kContainerSecrets = "/run/secrets";
inline constexpr const char* kContainerFiles = "/run/pscloud";

// Storage of the cluster's that each task sees: "SOURCE:TARGET", or "SOURCE:TARGET:ro". A source that is a path is that
// of each node; another is a volume's name. One path alone is the same on both sides.
struct ContainerMount {
  std::string source;
  std::string target;
  bool read_only = false;

  bool is_path() const { return source.starts_with('/'); }
};
// All options "mount" of the cluster.
Result<std::vector<ContainerMount>> container_mounts(const Cluster& cluster);

// "1000", "1000:100".
struct ContainerUser {
  int64_t user = 0;
  int64_t group = 0;
};
Result<ContainerUser> parse_container_user(std::string_view text);

// kInvalid names a task without an image, or an argument or variable that is not UTF-8: APIs of clusters take nothing
// else.
Result<> check_containers(const Plan& plan, std::string_view kind);

// The files of a plan, read here: small ones only, since the cluster itself keeps them. kInvalid for more than
// `bytes_max`.
Result<std::vector<ContainerTask::File>> container_files(const Plan& plan, uint64_t bytes_max);

}  // namespace pscloud

#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/local/child_process.h"
#include "cli/local/line_channel.h"
#include "cli/local/local_transport.h"
#include "pscloud/node.h"

namespace pscloud {

// A folder with the certificates of a cluster that lasts as long as this.
class ScratchCertificates {
 public:
  ScratchCertificates() = default;
  ~ScratchCertificates();
  ScratchCertificates(const ScratchCertificates&) = delete;
  ScratchCertificates& operator=(const ScratchCertificates&) = delete;

  // The tls_dir of nodes of this role.
  Result<std::string> issue(Role role);

 private:
  std::string folder_;
};

struct LocalClusterSpec {
  int servers = 1;
  int server_threads = 1;
  int workers = 1;
  LocalTransport transport;
};

// The scheduler and the servers of a job on this machine: the scheduler in this process, each server in one of its own
// or, if the transport wants it, here too. When this ends, so do they.
class LocalCluster {
 public:
  // Returns when all are up.
  static Result<std::unique_ptr<LocalCluster>> start(const LocalClusterSpec& spec, const Cancelled& cancelled);

  // What a worker needs to join: one of this process, or one of another by its environment.
  const NodeOptions& worker_options() const { return worker_options_; }
  std::vector<std::string> worker_environment() const;

  // Of all servers so far. In this process they cannot be told from the rest: NaN.
  double server_cpu_s() const;
  // Of the processes that hold the servers, be they this one.
  double server_own_bytes() const;

  // A server in a process of its own has ended, which is so when the job is over, or has failed. From any thread.
  bool has_lost_servers() const;

  // Returns when all have ended by themselves, after the workers left; kFailed names who did not.
  Result<> wait();

 private:
  struct ServerProcess {
    ChildProcess process;
    LineChannel lines;
  };

  explicit LocalCluster(const LocalClusterSpec& spec) : spec_(spec) {}
  Result<NodeOptions> options_for(Role role);
  Result<> start_nodes(const Cancelled& cancelled);
  Result<> start_server_process();

  const LocalClusterSpec spec_;
  ScratchCertificates certificates_;
  std::string scheduler_address_;
  std::unique_ptr<Node> scheduler_;
  std::vector<std::unique_ptr<Node>> server_threads_;
  std::vector<ServerProcess> server_processes_;
  NodeOptions worker_options_;
};

}  // namespace pscloud

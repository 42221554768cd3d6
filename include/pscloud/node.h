#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "pscloud/error.h"
#include "pscloud/types.h"
#include "pscloud/updater.h"

namespace pscloud {

// Lets nodes of one process talk without sockets: give the same object to each of them and use addresses
// "inproc:any-name". Outlives the nodes that use it.
class LocalNetwork;
// Who does the servers' work: their own threads, beside the workers; or, where workers keep all cores busy anyway, the
// threads of the workers, each when it has asked for something and none is at it.
enum class LocalWork { kOwnThreads, kThreadsOfWorkers };
std::shared_ptr<LocalNetwork> make_local_network(LocalWork work = LocalWork::kOwnThreads);

// What the rest do when a worker dies. (A server that dies always ends the job: its parameters are lost.)
enum class WorkerDeath : uint8_t { kContinue = 0, kFail = 1 };

// What a node needs to take part in a job. environment.h fills it from the environment.
struct NodeOptions {
  Role role = Role::kWorker;
  std::string job = "pscloud";          // nodes of another job are refused
  std::string scheduler;                // "host:port" (or "inproc:name"): where the scheduler listens
  std::string listen = "127.0.0.1:0";   // servers; the first owner's port, the others take free ones; so does port 0
  std::string advertise;                // host to tell others instead of that of `listen`
  std::string http = "auto";            // "host:port" for /health /status /metrics, or "off"; "unix:/folder/": a socket
                                        // in it; "auto": a free port of loopback, none for inproc
  std::string tls_dir;                  // ca.pem, node.pem, node.key as `pscloud ca` makes them
  bool insecure = false;                // plaintext on purpose: loopback or a private network only
  bool shared_memory = true;            // between workers and servers on one machine that run as the same user
  std::shared_ptr<LocalNetwork> local;  // for "inproc:" addresses
  int rank = -1;                        // wish for a rank; -1 takes what is free

  // Scheduler only.
  int servers = 1;      // processes to wait for
  int workers = 1;      // places for workers
  int workers_min = 0;  // begin when so many are there; 0 waits for all
  WorkerDeath worker_death = WorkerDeath::kContinue;
  int restart_wait_ms = 5000;  // when every worker has died: how long to wait for a new one

  // Server only.
  int owners = 1;                           // threads, each with its own part of every table
  uint64_t memory_max = uint64_t{8} << 30;  // bytes of all tables of one owner, and of the key lists it keeps

  // Worker only.
  uint64_t queue_bytes_max = uint64_t{256} << 20;  // of requests under way; then push() and pull() block
  int request_timeout_ms = 120000;

  int join_timeout_ms = 60000;
  int heartbeat_ms = 500;
  int death_timeout_ms = 5000;  // silent for so long: dead
  int stop_timeout_ms = 10000;  // for the others' goodbye
};

// kInvalid with what to change.
Result<> validate(const NodeOptions& options);

// A scheduler or server at work on threads of its own. Workers join by worker.h.
class Node {
 public:
  // Binds its ports and begins to join. `updaters` is used by servers.
  static Result<std::unique_ptr<Node>> start(const NodeOptions& options, const UpdaterCatalog& updaters = {});

  virtual ~Node() = default;  // stops

  // Where the scheduler (or the first owner) really listens.
  virtual std::string address() const = 0;
  virtual std::string http_address() const = 0;  // empty if none

  // Returns when the job is over: ok if the workers ended it, else why it failed.
  virtual Result<> wait() = 0;

  // Leaves at once. May be called twice and from any thread.
  virtual void stop() = 0;
};

}  // namespace pscloud

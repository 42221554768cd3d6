#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/backend.h"
#include "launch/swarm/container_task.h"
#include "launch/swarm/swarm_machines.h"

namespace pscloud {

// What a swarm is asked for, as the engine's API wants it. Pure.

inline constexpr const char* kSwarmJobLabel = "pscloud.job";
inline constexpr const char* kSwarmPortLabel = "pscloud.port";

// Where engines listen if nobody says otherwise.
inline constexpr const char* kEngineSocket = "/var/run/docker.sock";

struct SwarmOptions {
  std::string host;                    // of the engine; empty: DOCKER_HOST
  bool host_network = false;           // or an overlay network of the job's own
  uint16_t port = 20000;               // of each task on the overlay network
  std::string user;                    // of the programs, as numbers "1000:1000"; empty: the image's
  bool init = true;                    // a first process that passes signals on
  std::string socket = kEngineSocket;  // of the engines, on their nodes; empty: it is not used
  std::vector<ContainerMount> mounts;
  SwarmMachines machines;  // if we reach them: `host` is empty then
};
Result<SwarmOptions> read_swarm_options(const Cluster& cluster);

// Names of things in the swarm: "clicks-j0123456789a-worker-3". Unique, since the job is.
std::string swarm_name(const Plan& plan, std::string_view thing);

// The labels of everything that is made.
std::string swarm_network_json(const Plan& plan);
// Of a secret or a config.
std::string swarm_data_json(const Plan& plan, const std::string& name, std::string_view content, uint16_t port = 0);
// Of the config that stands for a port of the nodes: whichever job has made it has the port. `port` may be a word.
std::string swarm_port_name(std::string_view port);

// A file that lies in the swarm.
struct SwarmFile {
  std::string id;
  std::string name;
  std::string path;  // in the container
};

struct SwarmPlace {
  std::string network;  // id, or "host"
  std::string node;     // id; empty: the swarm finds one
  Address address;
};

std::string swarm_service_json(const Plan& plan, const PlannedTask& task, const ContainerTask& container,
                               const SwarmOptions& options, const SwarmPlace& place,
                               const std::vector<SwarmFile>& secrets, const std::vector<SwarmFile>& configs);

// A task that asks the engine of a node, by its socket, for something: `program` is engine_call.cc, as a config, and
// `image` any that the node has, since nothing of it runs.
std::string swarm_call_json(const Plan& plan, std::string_view name, const std::string& node, const std::string& image,
                            const SwarmFile& program, const std::string& socket,
                            const std::vector<std::string>& requests);

// The word of the engine for the state of a task that will never run again.
bool is_over(std::string_view state);

// The engine takes the value of a variable for a template of Go: this makes it come out as it is.
std::string swarm_literal(std::string_view value);

}  // namespace pscloud

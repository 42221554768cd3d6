#include "cli/bench/bench_adder_peers.h"

#include <fmt/format.h>

#include <array>

#include "launch/job_file.h"
#include "net/secret.h"

namespace pscloud {
namespace {

constexpr std::array kAdderPeers = {
    AdderPeer{"tensorflow", "adder_tensorflow.py", "tensorflow-cpu", Framework::kTensorflow, nullptr},
    AdderPeer{"ray", "adder_ray.py", "ray", Framework::kPscloud, "RAY_AUTH_TOKEN_PATH"},
    AdderPeer{"torch", "adder_torch.py", "torch", Framework::kTorch, nullptr},
};

constexpr const char* kScriptVariable = "PSCLOUD_ADDER_SCRIPT";
// $0 is the Python. One that is not there is told as a peer that is not there (bench_adder_gather.h), and as there
// (OTHERS_SAY_SO_S in bench/peers/adder.py) others get to say so before the run ends.
constexpr const char* kRunScript =
    R"(command -v "$0" >/dev/null || { echo "adder missing"; sleep 5; exit 77; }
exec "$0" "$PSCLOUD_ADDER_SCRIPT" "$@")";

}  // namespace

std::span<const AdderPeer> adder_peers() { return kAdderPeers; }

Job adder_peer_job(const AdderPeer& peer, const AdderFlags& flags, bool flags_warmup, const std::string& python) {
  std::vector<std::string> command{"sh", "-c", kRunScript, python, "--task"};
  const auto add = [&](const char* flag, std::string value) {
    command.emplace_back(flag);
    command.push_back(std::move(value));
  };
  add("--servers", std::to_string(flags.cluster.servers));
  add("--workers", std::to_string(flags.cluster.workers));
  add("--size-mb", fmt::to_string(flags.plan.size_mb));
  add("--iters", std::to_string(flags.iters));
  add("--mode", flags.plan.sync ? "sync" : "async");
  if (flags_warmup) add("--warmup", std::to_string(flags.warmup));
  Job job;
  job.framework = peer.framework;
  role_of(job, TaskRole::kServer).count = flags.cluster.servers;
  role_of(job, TaskRole::kWorker).count = flags.cluster.workers;
  for (RoleSpec& role : job.roles) role.commands = {command};
  for (const Asset& script : peer_scripts()) {
    job.secrets.push_back({.name = fmt::format("peers/{}", script.name),
                           .content = std::string(script.bytes),
                           .variable = script.name == peer.script ? kScriptVariable : ""});
  }
  if (peer.secret != nullptr) job.secrets.push_back({"secret", make_secret(), peer.secret, false});
  job.environment = {{"PYTHONDONTWRITEBYTECODE", "1"}};
  return job;
}

}  // namespace pscloud

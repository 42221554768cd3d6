#include "launch/cloud/user_data.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/base64.h"

namespace pscloud {
namespace {

constexpr size_t kUserDataMax = 16384;  // EC2's, before base64

// The time of the file is compared with itself, not with the clock, which may jump while a machine boots.
constexpr const char* kWatch = R"sh(#!/bin/sh
# Ends this machine when nobody has touched the file for IDLE seconds, when it says so, or when its time is over.
seen= since=0
while :; do
  now=$(cut -d. -f1 /proc/uptime)
  mark=$(stat -c %Y /var/lib/pscloud/alive 2>/dev/null)
  if [ "$mark" != "$seen" ]; then seen=$mark since=$now; fi
  asked=$(head -c 3 /var/lib/pscloud/alive 2>/dev/null)
  if [ $((now - since)) -ge "$1" ] || [ "$(date +%s)" -ge "$2" ] || [ "$asked" = end ]; then
    echo "pscloud: ends this machine: no word for $((now - since)) s${asked:+, or it was told to}"
    shutdown -h now || poweroff -f
  fi
  sleep 2
done
)sh";

constexpr const char* kDocker = R"(command -v docker >/dev/null || {
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q && apt-get install -y -q --no-install-recommends docker.io || fail "cannot install docker.io"
}
usermod -aG docker "$user" || fail "the user $user cannot be given to the group docker"
)";

// After the set-up, which may bring the driver.
constexpr const char* kGpus = R"(gpus=$(nvidia-smi --query-gpu=uuid --format=csv,noheader) && [ -n "$gpus" ] ||
  fail "nvidia-smi tells of no GPU"
)";
// The engine tells the swarm of each GPU, by the kind that tasks ask for (swarm_spec.cc), and containers see those that
// they got. Whatever else the image has set stays.
constexpr const char* kSwarmGpus = R"(command -v nvidia-container-runtime >/dev/null ||
  fail "nvidia-container-runtime is missing, without which containers have no GPU"
mkdir -p /etc/docker
python3 - "$gpus" <<'END' || fail "the container engine cannot be told of the GPUs"
import json, os, sys
path = "/etc/docker/daemon.json"
config = json.load(open(path)) if os.path.exists(path) else {}
config.setdefault("runtimes", {}).setdefault("nvidia", {"path": "nvidia-container-runtime"})
config["default-runtime"] = "nvidia"
config["node-generic-resources"] = ["gpu=" + gpu for gpu in sys.argv[1].split()]
json.dump(config, open(path, "w"))
END
sed -i 's/^#* *swarm-resource *=.*/swarm-resource = "DOCKER_RESOURCE_GPU"/' /etc/nvidia-container-runtime/config.toml
systemctl restart docker || fail "the container engine does not start with the GPUs"
)";
constexpr const char* kDockerAnswers = R"(# One that the image has, or that was told something, may be about to start.
for _ in $(seq 60); do docker info >/dev/null 2>&1 && break; sleep 1; done
docker info >/dev/null || fail "the container engine does not answer"
)";

bool has_gpus(const CloudPlan& plan, std::string_view role) {
  const auto group = std::ranges::find(plan.groups, role, &CloudPlan::Group::role);
  return group != plan.groups.end() && group->what.gpus > 0;
}

}  // namespace

Result<std::string> user_data(const CloudPlan& plan, std::string_view role, const std::string& login) {
  std::string text = fmt::format(
      "#!/bin/bash\n"
      "# Made by pscloud for the cluster {} ({}).\n"
      "user={}\n"
      "mkdir -p /var/lib/pscloud\n"
      "echo working > {state}.new; mv {state}.new {state}\n"
      "fail() {{ echo \"failed: $1\" > {state}.new; mv {state}.new {state}; exit 1; }}\n"
      "touch {alive}\n"
      "base64 -d > /usr/local/sbin/pscloud-watch <<'END'\n{}\nEND\n"
      "chmod 755 /usr/local/sbin/pscloud-watch\n",
      plan.name, plan.id, plan.user, base64(kWatch), fmt::arg("state", kMachineState),
      fmt::arg("alive", kMachineKeepAlive));
  // As a service it is there again after a restart; without systemd it lasts as long as this boot.
  text += fmt::format(
      "if [ -d /run/systemd/system ]; then\n"
      "  cat > /etc/systemd/system/pscloud-watch.service <<'END'\n"
      "[Service]\nExecStart=/usr/local/sbin/pscloud-watch {0} {1}\nRestart=always\n"
      "[Install]\nWantedBy=multi-user.target\nEND\n"
      "  systemctl daemon-reload && systemctl enable --now pscloud-watch || fail \"the watch does not start\"\n"
      "else\n"
      "  setsid /usr/local/sbin/pscloud-watch {0} {1} </dev/null >/var/log/pscloud-watch.log 2>&1 &\n"
      "fi\n",
      plan.idle_s, plan.expires_unix);
  // From here on it ends by itself, whatever fails.
  text += fmt::format("mkdir -p {1} && chown \"$user\" {0} {1} || fail \"there is no user $user\"\n", kMachineKeepAlive,
                      kMachineCache);
  if (!login.empty()) {
    text += fmt::format(
        "ssh=$(getent passwd \"$user\" | cut -d: -f6)/.ssh\n"
        "mkdir -p \"$ssh\" && cat >> \"$ssh/authorized_keys\" <<'END'\n{}\nEND\n"
        "chown -R \"$user:\" \"$ssh\" && chmod -R go= \"$ssh\" || fail \"the controller has no way in\"\n",
        login);
  }
  // A controller has no tasks: it reaches the engines of the others.
  const bool docker = plan.docker && role != kControllerRole;
  if (docker) text += std::string(kDocker) + kDockerAnswers;
  if (!plan.setup.empty()) {
    text += fmt::format(
        "base64 -d > /var/lib/pscloud/setup <<'END'\n{}\nEND\n"
        "chmod 700 /var/lib/pscloud/setup\n"
        "/var/lib/pscloud/setup || fail \"the set-up script ended with code $?\"\n",
        base64(plan.setup));
  }
  if (has_gpus(plan, role)) {
    text += kGpus;
    if (plan.swarm) text += std::string(kSwarmGpus) + kDockerAnswers;
  }
  text += fmt::format("echo ready > {state}.new; mv {state}.new {state}\n", fmt::arg("state", kMachineState));
  if (text.size() > kUserDataMax) {
    return invalid("the set-up script is too long: with ours it has {} bytes, and EC2 takes {}", text.size(),
                   kUserDataMax);
  }
  return text;
}

}  // namespace pscloud

#include "cli/cloud/controller_start.h"

#include <fmt/format.h>
#include <poll.h>

#include <chrono>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/cloud/controller_client.h"
#include "cli/exit_code.h"
#include "launch/agent/task_program.h"
#include "launch/backend.h"
#include "launch/bundle/shipped_files.h"
#include "launch/host/ssh_connection.h"
#include "launch/job_wire.h"
#include "launch/process/spawn.h"
#include "launch/process/tool.h"

namespace pscloud {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kToReach{60};
constexpr std::chrono::seconds kToStart{600};
constexpr int kToSendMs = 600000;
constexpr std::chrono::seconds kToResolve{10};
constexpr const char* kHere = "localhost";  // without ssh (ssh_connection.h)
constexpr const char* kLoopback = "127.0.0.1";

struct ControllerHost {
  Host host;
  SshOptions ssh;
  std::string address;  // that clients connect to
};

Result<ControllerHost> find_controller_host(const ControllerStart& options) {
  ControllerHost found;
  found.ssh.accept_new_host_keys = options.accept_new_host_keys;
  if (options.cloud) {
    found.host = options.cloud->way.host;
    found.ssh = options.cloud->way.ssh;
    found.address = kLoopback;
    return found;
  }
  if (options.where == "local") {
    found.host.name = found.host.address = kHere;
    found.address = kLoopback;
    return found;
  }
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(options.where, error);
  const Cluster cluster = TRY(find_cluster(is_file ? options.where : "ssh:" + options.where));
  if (cluster.hosts.size() != 1) return invalid("--controller {}: it must name one host", options.where);
  found.host = cluster.hosts.front();
  found.ssh.config_file = option_of(cluster, "ssh_config");
  // What the user calls it may be a word of his ssh_config.
  std::vector<std::string> words = ssh_command(found.host, found.ssh, false);
  words.insert(words.begin() + 1, "-G");
  const std::string settings = TRY(tool_answer(words, "", kToResolve));
  constexpr std::string_view kName = "\nhostname ";
  const size_t at = ("\n" + settings).find(kName);
  found.address = at == std::string::npos
                      ? found.host.address
                      : settings.substr(at + kName.size() - 1, settings.find('\n', at) - at - kName.size() + 1);
  return found;
}

Result<JsonValue> next_answer(AgentConnection& connection, steady_clock::time_point deadline) {
  LineStream& lines = connection.stream().lines();
  while (true) {
    connection.read_complaints();
    if (const auto line = lines.next_line()) {
      const JsonValue answer = TRY(JsonValue::parse(*line));
      if (const std::string& error = answer["error"].text(); !error.empty()) {
        return Error{static_cast<Code>(answer["code"].integer(static_cast<int64_t>(Code::kFailed))), error};
      }
      return answer;
    }
    if (lines.broken()) return unavailable("the controller did not start: {}", connection.why());
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now()).count();
    if (left <= 0) return timed_out("the controller on {} did not start in time", connection.host());
    std::vector<pollfd> polled;
    connection.add_to(polled);
    ::poll(polled.data(), polled.size(), static_cast<int>(std::min<int64_t>(left, 1000)));
  }
}

Result<> send_file(LineStream& lines, const ShippedFile& file) {
  return read_pieces(file.path, [&](std::string_view piece, bool last) -> Result<> {
    JsonWriter json;
    json.begin_object().field("hash", file.hash).field("data", base64(piece)).field("last", last).end_object();
    lines.send_line(json.text());
    if (lines.flush(kToSendMs)) return {};
    return unavailable("the connection broke while {} was copied", file.name);
  });
}

// A controller on this machine would have them in its environment, for all who may look at its processes.
std::vector<std::string> environment_without_secrets(const Job& job) {
  TaskSpec all;
  all.files = job.secrets;
  for (const RoleSpec& role : job.roles) all.files.insert(all.files.end(), role.secrets.begin(), role.secrets.end());
  std::vector<std::string> environment = inherited_environment();
  hide_secrets(all, environment);
  return environment;
}

Result<JsonValue> start_there(const Job& job, const Cluster& cluster, const ControllerStart& options) {
  const ControllerHost there = TRY(find_controller_host(options));
  std::vector<std::string> paths = job.files;
  paths.insert(paths.end(), cluster.files.begin(), cluster.files.end());
  const std::vector<ShippedFile> files = TRY(list_shipped(paths));
  const bool takes_down = options.cloud && !options.keep_cluster;
  const std::string charge =
      takes_down ? cloud_charge_json(TRY(charge_controller(*options.cloud, options.logs_to))) : "";
  auto connection = TRY(open_program(there.host, there.ssh, {"controller", "--take"}, environment_without_secrets(job),
                                     steady_clock::now() + kToReach));
  LineStream& lines = connection.stream().lines();
  JsonWriter json;
  json.begin_object().field("job", job_wire_json(job)).field("cluster", cluster_json(cluster));
  json.field("named", options.named).field("linger_s", options.linger_s).field("address", there.address);
  // Nothing but ssh is open to the world: what is behind it needs no second lock, and browsers know no CA of ours.
  json.field("tunnel", options.cloud.has_value()).field("charge", charge).field("files", shipped_json(files));
  lines.send_line(json.end_object().text());
  const JsonValue wanted = TRY(next_answer(connection, steady_clock::now() + kToReach));
  for (const JsonValue& index : wanted["missing"].items()) {
    const auto i = static_cast<size_t>(index.integer());
    if (i >= files.size()) return corrupt("the controller asks for a file that nobody has");
    TRY(send_file(lines, files[i]));
  }
  return next_answer(connection, steady_clock::now() + kToStart);
}

}  // namespace

int start_on_controller(const Job& job, const Cluster& cluster, ControllerStart options) {
  const bool takes_down = options.cloud && !options.keep_cluster;
  // Two runs at once could not both take it down.
  if (options.cloud) {
    if (const auto locked = options.cloud->folder.lock(); !locked) return fail(locked.error());
  }
  const auto answer = start_there(job, cluster, options);
  if (!answer) return fail(answer.error());
  if (takes_down) {
    if (const auto given = give_away(*options.cloud); !given) return fail(given.error());
  }
  const std::string run = (*answer)["run"].text();
  const std::string url = (*answer)["url"].text();
  const std::string where = options.cloud ? options.cloud->state.plan.name : "";
  if (const auto kept = keep_access(run, {url, (*answer)["token"].text(), (*answer)["ca"].text(), where}); !kept) {
    return fail(kept.error());
  }
  if (options.json) {
    JsonWriter json;
    json.begin_object().field("run", run).field("controller", url);
    if (options.cloud) json.field("cluster", where).field("takes_down", takes_down);
    fmt::print("{}\n", json.end_object().text());
  } else {
    fmt::print("{}\n", escape_controls(run));
    fmt::print(stderr,
               "pscloud: run {0} has started; a controller at {1} looks after it: `pscloud status --controller {0}`, "
               "`pscloud logs {0} -f --controller {0}`, `pscloud stop {0} --controller {0}`\n",
               escape_controls(run),
               options.cloud ? options.cloud->way.host.name + " of " + where : escape_controls(url));
    if (takes_down) {
      fmt::print(stderr,
                 "pscloud: when it has ended, well or not, the cluster {} is taken down, and last its controller\n",
                 where);
    }
  }
  return kExitDone;
}

}  // namespace pscloud

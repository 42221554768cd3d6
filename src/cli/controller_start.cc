#include "cli/controller_start.h"

#include <fmt/format.h>
#include <poll.h>

#include <chrono>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/controller_client.h"
#include "cli/exit_code.h"
#include "launch/backend.h"
#include "launch/bundle/shipped_files.h"
#include "launch/host/ssh_connection.h"
#include "launch/job_wire.h"
#include "launch/process/tool.h"

namespace pscloud {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kToReach{60};
constexpr std::chrono::seconds kToStart{600};
constexpr int kToSendMs = 600000;
constexpr std::chrono::seconds kToResolve{10};
constexpr const char* kHere = "localhost";  // without ssh (ssh_connection.h)

struct ControllerHost {
  Host host;
  SshOptions ssh;
  std::string address;  // that clients connect to
};

Result<ControllerHost> find_controller_host(const ControllerStart& options) {
  ControllerHost found;
  found.ssh.accept_new_host_keys = options.accept_new_host_keys;
  if (options.where == "local") {
    found.host.name = found.host.address = kHere;
    found.address = "127.0.0.1";
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

Result<JsonValue> start_there(const Job& job, const Cluster& cluster, const ControllerStart& options) {
  const ControllerHost there = TRY(find_controller_host(options));
  std::vector<std::string> paths = job.files;
  paths.insert(paths.end(), cluster.files.begin(), cluster.files.end());
  const std::vector<ShippedFile> files = TRY(list_shipped(paths));
  auto connection = TRY(open_program(there.host, there.ssh, {"controller", "--take"}, steady_clock::now() + kToReach));
  LineStream& lines = connection.stream().lines();
  JsonWriter json;
  json.begin_object().field("job", job_wire_json(job)).field("cluster", cluster_json(cluster));
  json.field("named", options.named).field("linger_s", options.linger_s).field("address", there.address);
  json.field("files", shipped_json(files)).end_object();
  lines.send_line(json.text());
  const JsonValue wanted = TRY(next_answer(connection, steady_clock::now() + kToReach));
  for (const JsonValue& index : wanted["missing"].items()) {
    const auto i = static_cast<size_t>(index.integer());
    if (i >= files.size()) return corrupt("the controller asks for a file that nobody has");
    TRY(send_file(lines, files[i]));
  }
  return next_answer(connection, steady_clock::now() + kToStart);
}

}  // namespace

int start_on_controller(const Job& job, const Cluster& cluster, const ControllerStart& options) {
  const auto answer = start_there(job, cluster, options);
  if (!answer) return fail(answer.error());
  const std::string run = (*answer)["run"].text();
  const std::string url = (*answer)["url"].text();
  if (const auto kept = keep_access(run, {url, (*answer)["token"].text(), (*answer)["ca"].text()}); !kept) {
    return fail(kept.error());
  }
  if (options.json) {
    JsonWriter json;
    fmt::print("{}\n", json.begin_object().field("run", run).field("controller", url).end_object().text());
  } else {
    fmt::print("{}\n", escape_controls(run));
    fmt::print(stderr,
               "pscloud: run {0} has started; a controller at {1} looks after it: `pscloud status --controller {0}`, "
               "`pscloud logs {0} -f --controller {0}`, `pscloud stop {0} --controller {0}`\n",
               escape_controls(run), escape_controls(url));
  }
  return kExitDone;
}

}  // namespace pscloud

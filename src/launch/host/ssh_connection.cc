#include "launch/host/ssh_connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <list>
#include <optional>
#include <string_view>

#include "base/hash.h"
#include "base/text.h"
#include "launch/process/own_program.h"
#include "launch/process/processes.h"
#include "launch/process/spawn.h"

namespace pscloud {
namespace {

using std::chrono::steady_clock;

constexpr const char* kLoopbackName = "localhost";
constexpr int kConnectTimeoutS = 10;
constexpr std::string_view kSays = "pscloud-bootstrap ";
// Of the bundle that lie in a stream and wait: there may be many hosts.
constexpr size_t kWaitingMax = 1 << 20;
// Of what the user's own start-up files print before.
constexpr int kForeignLinesMax = 1000;

// Read by the shell of the user, whichever that is, so it is one word for another that is known. Gets a line with what
// to start; says whether it has the bundle, and touches it, for it to stay (bundle_cache.h); takes it if not, aside, so
// that it is there whole or not at all.
constexpr const char* kBootstrap =
    "exec /bin/sh -c '"
    "umask 077; read -r hash bytes kind loader words || exit 1; "
    "[ \"$(uname -sm)\" = \"Linux $kind\" ] || { echo \"pscloud-bootstrap kind $(uname -sm)\"; exit 1; }; "
    "base=${XDG_CACHE_HOME:-$HOME/.cache}/pscloud; dir=$base/$hash; "
    "if [ -f \"$dir/ready\" ] && touch \"$dir/ready\"; then echo \"pscloud-bootstrap have\"; else "
    "new=$dir.$$; mkdir -p \"$new\" || { echo \"pscloud-bootstrap failed mkdir $new\"; exit 1; }; "
    "echo \"pscloud-bootstrap want\"; "
    "head -c \"$bytes\" | tar -xf - -C \"$new\" && : > \"$new/ready\" && mv -T \"$new\" \"$dir\" 2>/dev/null; "
    "rm -rf \"$new\"; "
    "[ -f \"$dir/ready\" ] || { echo \"pscloud-bootstrap failed to unpack $dir\"; exit 1; }; fi; "
    "echo \"pscloud-bootstrap run\"; "
    "exec \"$dir/$loader\" --library-path \"$dir\" --argv0 pscloud \"$dir/pscloud\" $words'";

std::string machine_kind() {
  utsname name{};
  ::uname(&name);
  return name.machine;
}

// The bundle and its bytes, the same for all hosts.
class BundleBytes {
 public:
  static Result<BundleBytes> make() {
    Bundle bundle = TRY(own_bundle());
    std::string bytes = TRY(bundle_tar(bundle));
    return BundleBytes(std::move(bundle), std::move(bytes));
  }

  const Bundle& bundle() const { return bundle_; }
  std::string_view get() const { return bytes_; }

 private:
  BundleBytes(Bundle bundle, std::string bytes) : bundle_(std::move(bundle)), bytes_(std::move(bytes)) {}

  Bundle bundle_;
  std::string bytes_;
};

// One host on its way to an agent.
struct Opening {
  const Host& host;
  std::optional<AgentConnection> connection;  // until it is given away
  steady_clock::duration patience;            // until it is ready, or with a bundle that does not get on
  steady_clock::time_point deadline = steady_clock::now() + patience;
  bool ready = false;
  int foreign_lines = 0;
  std::string wrong = {};
  std::string_view to_send = {};  // of the bundle
  size_t unsent = 0;              // of it, when it last got on

  bool is_done() const { return ready || !wrong.empty(); }
};

void take_line(Opening& opening, std::string_view line, const BundleBytes& bytes) {
  if (!line.starts_with(kSays)) {
    if (++opening.foreign_lines > kForeignLinesMax) opening.wrong = "prints too much at login";
    return;
  }
  line.remove_prefix(kSays.size());
  if (line == "run") {
    opening.ready = true;
  } else if (line == "want") {
    opening.to_send = bytes.get();
    opening.unsent = bytes.get().size() + 1;  // that it is wanted is progress too
  } else if (line.starts_with("kind ")) {
    opening.wrong = fmt::format("is a machine of the kind '{}', and this program is for 'Linux {}'",
                                escape_controls(line.substr(5)), machine_kind());
  } else if (line != "have") {
    opening.wrong = escape_controls(line);
  }
}

void go_on(Opening& opening, const BundleBytes& bytes) {
  LineStream& lines = opening.connection->stream().lines();
  opening.connection->read_complaints();
  while (!opening.is_done()) {
    const auto line = lines.next_line();
    if (line) {
      take_line(opening, *line, bytes);
    } else if (lines.broken()) {
      const std::string why = opening.connection->why();
      opening.wrong = explain_ssh(opening.host, opening.connection->complaints(), why);
    } else if (!opening.to_send.empty() && lines.unsent() < kWaitingMax) {
      const std::string_view piece = opening.to_send.substr(0, kWaitingMax);
      opening.to_send.remove_prefix(piece.size());
      lines.send_bytes(piece);
    } else {
      break;
    }
  }
  const size_t unsent = opening.to_send.size() + lines.unsent();
  const auto now = steady_clock::now();
  if (unsent < opening.unsent) {
    opening.unsent = unsent;
    opening.deadline = now + opening.patience;
  }
  if (opening.is_done() || now < opening.deadline) return;
  opening.wrong = opening.unsent == 0 ? "did not get ready in time"
                                      : fmt::format("takes no more of this program: {:.1f} of {:.1f} MB are missing",
                                                    static_cast<double>(opening.unsent) / 1e6,
                                                    static_cast<double>(bytes.get().size()) / 1e6);
}

// On this machine, without ssh.
Result<AgentConnection> begin_here(const Host& host, const std::vector<std::string>& words,
                                   const std::vector<std::string>& environment) {
  std::vector<std::string> command = own_program();
  command.insert(command.end(), words.begin(), words.end());
  return AgentConnection::open(host.name, command, environment);
}

// `words` are of ours: none has a space, and a shell reads nothing into them.
Result<AgentConnection> begin(const Host& host, const SshOptions& options, const BundleBytes& bytes,
                              const std::vector<std::string>& words) {
  if (host.address == kLoopbackName) return begin_here(host, words, inherited_environment());
  std::vector<std::string> command = ssh_command(host, options, true);
  command.emplace_back(kBootstrap);
  const std::vector<std::string> environment = inherited_environment();
  const auto ssh = find_program("ssh", variable_of(environment, "PATH"));
  if (!ssh) return not_found("there is no 'ssh' on this machine: install an OpenSSH client");
  command.front() = *ssh;
  auto connection = TRY(AgentConnection::open(host.name, command, environment));
  connection.stream().lines().send_line(fmt::format("{} {} {} {} {}", bytes.bundle().hash, bytes.get().size(),
                                                    machine_kind(), bytes.bundle().loader, fmt::join(words, " ")));
  return connection;
}

}  // namespace

std::vector<std::string> ssh_command(const Host& host, const SshOptions& options, bool master) {
  std::vector<std::string> command{"ssh"};
  if (!options.config_file.empty()) command.insert(command.end(), {"-F", options.config_file});
  const auto set = [&](const std::string& option) { command.insert(command.end(), {"-o", option}); };
  set("BatchMode=yes");
  set("PreferredAuthentications=publickey");
  set(fmt::format("StrictHostKeyChecking={}", options.accept_new_host_keys ? "accept-new" : "yes"));
  set(fmt::format("ConnectTimeout={}", kConnectTimeoutS));
  // Three questions without an answer are the end.
  set(fmt::format("ServerAliveInterval={}", std::max(options.lost_after_s / 3, 1)));
  set("ServerAliveCountMax=3");
  set("LogLevel=ERROR");
  set("ClearAllForwardings=yes");
  set("ForwardAgent=no");
  set("ForwardX11=no");
  set("PermitLocalCommand=no");
  if (!options.control_folder.empty()) {
    set(fmt::format("ControlMaster={}", master ? "yes" : "no"));
    const uint64_t name = hash64(std::as_bytes(std::span(host.name)));  // which may have any character
    set(fmt::format("ControlPath={}/{:016x}", options.control_folder, name));
    set("ControlPersist=no");
  }
  if (master) {
    set("RequestTTY=no");
    set("EscapeChar=none");
  }
  if (host.port != 0) command.insert(command.end(), {"-p", std::to_string(host.port)});
  if (!host.user.empty()) command.insert(command.end(), {"-l", host.user});
  if (!host.identity_file.empty()) {
    command.insert(command.end(), {"-i", host.identity_file});
    set("IdentitiesOnly=yes");
  }
  command.insert(command.end(), {"--", host.address});
  return command;
}

std::string explain_ssh(const Host& host, const std::string& complaints, const std::string& why) {
  const auto said = [&](std::string_view text) { return complaints.find(text) != std::string::npos; };
  if (said("IDENTIFICATION HAS CHANGED")) {
    return fmt::format(
        "its host key is not the one that is known: somebody may be in between, or the machine is a new one; if "
        "that is so, `ssh-keygen -R {}` forgets the old key",
        host.address);
  }
  if (said("host key is known") || said("Host key verification failed")) {
    return "its host key is not known: compare it and add it to known_hosts, or take it with --accept-new-host-keys";
  }
  if (said("Permission denied")) {
    return fmt::format(
        "does not accept the key{}: add the public key to its authorized_keys (`ssh-copy-id`), or name another "
        "user or identity_file",
        host.user.empty() ? "" : fmt::format(" of the user {}", host.user));
  }
  if (said("Timeout, server")) return "does not answer any more";
  return why;
}

Result<std::map<std::string, std::string>> open_agents(const std::vector<Host>& hosts, const SshOptions& options,
                                                       AgentHosts& agents, steady_clock::time_point deadline) {
  const BundleBytes bytes = TRY(BundleBytes::make());
  std::list<Opening> openings;
  const std::vector<std::string> words{"task", "--silence-ms", std::to_string(options.lost_after_s * 1000)};
  for (const Host& host : hosts) {
    auto connection = begin(host, options, bytes, words);
    if (!connection) return connection.error();
    openings.push_back({host, *std::move(connection), deadline - steady_clock::now()});
    openings.back().ready = host.address == kLoopbackName;
  }
  while (true) {
    std::vector<pollfd> polled;
    for (Opening& opening : openings) {
      if (opening.connection && opening.ready) {
        agents.add(*std::move(opening.connection));
        opening.connection.reset();
      }
      if (!opening.is_done()) opening.connection->add_to(polled);
    }
    if (std::ranges::all_of(openings, &Opening::is_done)) break;
    // Those that are ready wait for the others, and would take silence for our end.
    const auto now = steady_clock::now();
    agents.beat(now);
    auto until = now + AgentHosts::kBeatEvery;
    for (const Opening& opening : openings) {
      if (!opening.is_done()) until = std::min(until, opening.deadline);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
    ::poll(polled.data(), polled.size(), static_cast<int>(std::max<int64_t>(left, 0)));
    for (Opening& opening : openings) {
      if (!opening.is_done()) go_on(opening, bytes);
    }
  }
  std::map<std::string, std::string> wrong;
  for (const Opening& opening : openings) {
    if (!opening.wrong.empty()) wrong[opening.host.name] = opening.wrong;
  }
  return wrong;
}

Result<AgentConnection> open_program(const Host& host, const SshOptions& options, const std::vector<std::string>& words,
                                     std::vector<std::string> environment, steady_clock::time_point deadline) {
  // It could be taken for a flag of ssh.
  if (host.address.starts_with('-')) return invalid("'{}' is no address of a host", host.address);
  if (host.address == kLoopbackName) {
    if (const char* home = std::getenv("PSCLOUD_HOME")) set_variable(environment, "PSCLOUD_HOME", home);
    return begin_here(host, words, environment);
  }
  const BundleBytes bytes = TRY(BundleBytes::make());
  Opening opening{host, TRY(begin(host, options, bytes, words)), deadline - steady_clock::now()};
  while (true) {
    go_on(opening, bytes);
    if (!opening.wrong.empty()) return unavailable("{}: {}", host.name, opening.wrong);
    if (opening.ready) return *std::move(opening.connection);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(opening.deadline - steady_clock::now()).count();
    std::vector<pollfd> polled;
    opening.connection->add_to(polled);
    ::poll(polled.data(), polled.size(), static_cast<int>(std::clamp<int64_t>(left, 0, 1000)));
  }
}

}  // namespace pscloud

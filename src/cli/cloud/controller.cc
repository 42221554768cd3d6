#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "base/json.h"
#include "base/json_value.h"
#include "cli/cloud/cluster_end.h"
#include "cli/cloud/controller_launcher.h"
#include "cli/exit_code.h"
#include "cli/private_file.h"
#include "cli/signals.h"
#include "cli/stop_process.h"
#include "cli/verb.h"
#include "console/api.h"
#include "launch/agent/keep_alive.h"
#include "launch/agent/line_stream.h"
#include "launch/bundle/shipped_files.h"
#include "launch/job_wire.h"
#include "launch/launcher.h"
#include "net/address.h"
#include "net/certificate.h"
#include "net/http_server.h"
#include "net/secret.h"

namespace pscloud {
namespace {

constexpr const char* kControllerAbout =
    R"(Looks after a run on a machine that stays: `pscloud run --controller HOST` starts
it there, not people. It runs the launcher, answers the API of docs/controller.md
over TLS, takes everything down when the run has ended, and ends itself a while
later. What it is told comes over stdin.)";

namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr size_t kTakenLineMax = 64 << 20;  // a piece of a file, or a job with its secrets
constexpr std::chrono::seconds kToTake{600};
constexpr std::chrono::milliseconds kWatchEvery{100};
constexpr std::chrono::seconds kLastWords{1};  // for who follows the run to hear of its end
constexpr std::chrono::days kCertificateDays{365};
constexpr size_t kControllerBodyMax = 1 << 20;
constexpr int kControllerStreams = 32;
constexpr std::chrono::seconds kToStop{120};  // beside the time that the job leaves its tasks
constexpr std::chrono::seconds kToHurry{30};

// What a laptop has asked for.
struct TakenJob {
  Job job;
  Cluster cluster;
  bool named = false;
  int linger_s = 0;
  std::string address;                // by which it knows this machine
  bool tunnel = false;                // it comes through ssh, and to the loopback
  std::optional<CloudCharge> charge;  // this machine is of a cluster that ends with the run
  std::vector<ShippedFile> files;
};

Result<std::string> read_line(LineStream& lines) {
  const auto deadline = steady_clock::now() + kToTake;
  while (steady_clock::now() < deadline) {
    if (auto line = lines.next_line()) return *std::move(line);
    if (lines.broken()) return unavailable("{}", *lines.broken());
    std::vector<pollfd> polled;
    lines.add_to(polled);
    ::poll(polled.data(), polled.size(), 1000);
  }
  return timed_out("nothing came from who has started this controller");
}

Result<TakenJob> take_job(LineStream& lines) {
  const JsonValue request = TRY(JsonValue::parse(TRY(read_line(lines))));
  TakenJob taken;
  taken.job = TRY(parse_job_wire(TRY(JsonValue::parse(request["job"].text()))));
  taken.cluster = TRY(parse_cluster_file(request["cluster"].text(), "the cluster"));
  taken.named = request["named"].truth();
  taken.linger_s = static_cast<int>(request["linger_s"].integer());
  taken.address = request["address"].text();
  taken.tunnel = request["tunnel"].truth();
  if (const std::string& charge = request["charge"].text(); !charge.empty()) {
    taken.charge = TRY(parse_cloud_charge(TRY(JsonValue::parse(charge))));
  }
  taken.files = TRY(parse_shipped(TRY(JsonValue::parse(request["files"].text()))));
  return taken;
}

// Files that this machine does not have from an earlier run come over the stream.
Result<> take_files(LineStream& lines, FileCache& cache, const std::vector<ShippedFile>& files) {
  JsonWriter json;
  json.begin_object().key("missing").begin_array();
  size_t missing = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    if (cache.has(files[i])) continue;
    ++missing;
    json.value(static_cast<uint64_t>(i));
  }
  lines.send_line(json.end_array().end_object().text());
  while (missing > 0) {
    const JsonValue piece = TRY(JsonValue::parse(TRY(read_line(lines))));
    const auto bytes = parse_base64(piece["data"].text());
    if (!bytes) return corrupt("a piece of a file came that is none");
    TRY(cache.put(piece["hash"].text(), *bytes, piece["last"].truth()));
    if (piece["last"].truth()) --missing;
  }
  return {};
}

// All that a controller has for itself; removed at its end.
class ControllerFolder {
 public:
  static Result<ControllerFolder> make() {
    const std::string runs = TRY(find_runs_folder());
    ControllerFolder folder(fs::path(runs).parent_path().string() + "/controller-" + make_secret().substr(0, 12));
    TRY(write_private_file(folder.path("files/.keep"), ""));
    return folder;
  }
  std::string path(std::string_view name) const { return fmt::format("{}/{}", path_, name); }
  void remove() const {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }

 private:
  explicit ControllerFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Until that process has ended, or somebody wants this one to end.
void wait_for_launcher(const ControllerLauncher& launcher, const Signals& signals, KeepAlive& keep_alive) {
  while (signals.received() == 0 && !launcher.has_ended()) {
    keep_alive.beat(steady_clock::now());
    ::poll(nullptr, 0, static_cast<int>(kWatchEvery.count()));
  }
}

class ControllerServer {
 public:
  static Result<std::unique_ptr<ControllerServer>> start(const std::string& runs, const std::string& run,
                                                         const ControllerFolder& folder, const TakenJob& taken) {
    const std::string& address = taken.address;
    HttpServerOptions http;
    http.address = is_loopback(address) ? "127.0.0.1:0" : "0.0.0.0:0";
    http.body_bytes_max = kControllerBodyMax;
    http.streams_max = kControllerStreams;
    std::unique_ptr<ControllerServer> made(new ControllerServer(runs, run));
    const bool plain = taken.tunnel && is_loopback(address);
    if (!plain) made->ca_ = TRY(make_certificate(folder, address, http));
    made->server_ =
        TRY(HttpServer::start(http, [api = made->api_.get()](const HttpCall& call) { return api->answer(call); }));
    made->url_ = fmt::format("{}://{}", plain ? "http" : "https",
                             Address{address, parse_address(made->server_->address())->port}.text());
    return made;
  }

  std::string answer(const std::string& run) const {
    JsonWriter json;
    json.begin_object().field("run", run).field("url", url_).field("token", token_).field("ca", ca_);
    return json.end_object().text() + "\n";
  }
  // Somebody has asked for the end of everything.
  bool end_asked() const { return end_asked_; }

 private:
  // The CA that clients shall believe.
  static Result<std::string> make_certificate(const ControllerFolder& folder, const std::string& address,
                                              HttpServerOptions& http) {
    std::vector<std::string> hosts{address};
    for (const char* host : {"localhost", "127.0.0.1"}) {
      if (address != host) hosts.emplace_back(host);
    }
    NodePems pems = TRY(issue_for_hosts("controller", hosts, kCertificateDays));
    http.certificate_file = folder.path("controller.pem");
    http.key_file = folder.path("controller.key");
    TRY(write_private_file(http.certificate_file, pems.certificate));
    TRY(write_private_file(http.key_file, pems.key));
    return std::move(pems.ca);
  }

  ControllerServer(const std::string& runs, const std::string& own) : token_(make_secret()) {
    ApiOptions options;
    options.runs = runs;
    options.token = token_;
    options.version = program_version();
    options.controller = true;
    options.run = own;
    options.clean = [this, runs](const std::string& run) { return stops_.begin(run, fmt::format("{}/{}", runs, run)); };
    // The machine may have runs of other controllers, or of none: their end is not this one's.
    options.cleanup_asked = [this, own](const std::string& run) {
      if (run == own) end_asked_ = true;
    };
    api_ = std::make_unique<Api>(options);
  }

  const std::string token_;
  std::string url_;
  std::string ca_;
  StopProcesses stops_;
  std::atomic<bool> end_asked_ = false;
  std::unique_ptr<Api> api_;
  std::unique_ptr<HttpServer> server_;  // the first to end
};

// In a process of its own session, which nobody waits for; `out` is for one line to who has asked.
int be_controller(const TakenJob& taken, const ControllerFolder& folder, Fd out) {
  const auto refuse = [&](const Error& error) {
    JsonWriter json;
    json.begin_object().field("error", error.message).field("code", static_cast<int>(error.code)).end_object();
    const std::string text = json.text() + "\n";
    folder.remove();
    return ::write(out.get(), text.data(), text.size()) < 0 ? kExitFailed : exit_code(error.code);
  };
  const auto runs = find_runs_folder();
  if (!runs) return refuse(runs.error());
  const ControllerLauncher::Patience patience{kToStop + std::chrono::milliseconds(taken.job.stop_grace_ms), kToHurry};
  auto launcher = ControllerLauncher::start(
      {taken.job, taken.cluster, taken.named, taken.charge, [&] { folder.remove(); }}, *runs, out);
  if (!launcher) return refuse(launcher.error());
  Signals signals;
  signals.watch([](int) {});
  auto server = ControllerServer::start(*runs, launcher->run(), folder, taken);
  if (!server) {
    launcher->end(patience);
    return refuse(server.error());
  }
  const std::string answer = (*server)->answer(launcher->run());
  const bool told = ::write(out.get(), answer.data(), answer.size()) == static_cast<ssize_t>(answer.size());
  out = Fd();
  KeepAlive keep_alive;
  if (told) {
    launcher->confirm();
    wait_for_launcher(*launcher, signals, keep_alive);
  }
  launcher->end(patience);
  std::optional<ClusterEnd> cluster_end;
  if (told && taken.charge) {
    cluster_end.emplace(*taken.charge, fmt::format("{}/{}", *runs, launcher->run()), keep_alive);
  }
  if (cluster_end) {
    cluster_end->save_logs();
    cluster_end->end_others();
  }
  const auto ended = steady_clock::now();
  const auto until = ended + std::chrono::seconds(told ? taken.linger_s : 0);
  while (steady_clock::now() < ended + kLastWords ||
         (steady_clock::now() < until && signals.received() == 0 && !(*server)->end_asked())) {
    keep_alive.beat(steady_clock::now());
    ::poll(nullptr, 0, static_cast<int>(kWatchEvery.count()));
  }
  server->reset();
  folder.remove();
  if (cluster_end) cluster_end->end_own();
  return kExitDone;
}

std::string file_cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  return (cache != nullptr ? std::string(cache) : std::string(home != nullptr ? home : "/tmp") + "/.cache") +
         "/pscloud/files";
}

Result<std::pair<TakenJob, ControllerFolder>> take_all(LineStream& lines) {
  TakenJob taken = TRY(take_job(lines));
  FileCache cache(file_cache_folder());
  TRY(take_files(lines, cache, taken.files));
  ControllerFolder folder = TRY(ControllerFolder::make());
  TRY(cache.place(taken.files, folder.path("files")));
  // Tasks find them where the launcher is, and those elsewhere get copies. Who has nothing copied to his own machine
  // means the folder that he is in.
  const bool stays = taken.files.empty() && is_loopback(taken.address) && !taken.tunnel;
  if (!stays && ::chdir(folder.path("files").c_str()) != 0) {
    return unavailable("cannot go to the folder of its files");
  }
  taken.job.files.clear();
  taken.cluster.files.clear();
  std::set<std::string> names;
  for (const ShippedFile& file : taken.files) names.insert(file.name.substr(0, file.name.find('/')));
  for (const std::string& name : names) taken.job.files.push_back(folder.path("files/" + name));
  return std::pair(std::move(taken), std::move(folder));
}

int run_controller() {
  LineStream lines(Fd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)), Fd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)),
                   kTakenLineMax);
  const auto answer = [&](std::string_view text) {
    lines.send_line(text);
    return lines.flush(static_cast<int>(kToTake.count()) * 1000);
  };
  auto taken = take_all(lines);
  if (!taken) {
    JsonWriter json;
    json.begin_object().field("error", taken.error().message).field("code", static_cast<int>(taken.error().code));
    answer(json.end_object().text());
    return exit_code(taken.error().code);
  }
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(unavailable("cannot make a pipe: {}", errno_text(errno)));
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return fail(unavailable("cannot start a process: {}", errno_text(errno)));
  if (child == 0) {
    ::setsid();
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGHUP, SIG_IGN);
    const Fd log(::open(taken->second.path("controller.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    const Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) ::dup2(nothing.get(), fd);
    ::dup2(log.get(), STDERR_FILENO);
    const int code = be_controller(taken->first, taken->second, std::move(write_end));
    std::fflush(nullptr);
    ::_exit(code);
  }
  write_end = Fd();
  std::string text;
  char piece[4096];
  while (true) {
    const ssize_t got = ::read(read_end.get(), piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(piece, static_cast<size_t>(got));
  }
  if (!text.empty()) text.pop_back();
  // Who has asked may be gone meanwhile: nobody would ever know the token, so there is no run either.
  if (answer(text)) return kExitDone;
  ::kill(child, SIGTERM);
  return kExitFailed;
}

}  // namespace

void add_controller(CLI::App& verb, Action& action) {
  verb.add_flag_callback(
          "--take", [] {}, "the job from stdin")
      ->required();
  verb.footer(kControllerAbout);
  verb.group("");
  verb.callback([&action] { action = [] { return run_controller(); }; });
}

}  // namespace pscloud

#include "cli/local/local_cluster.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <thread>

#include "engine/node_variables.h"
#include "net/certificate.h"
#include "pscloud/environment.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;

constexpr const char* kJob = "local";
constexpr uint64_t kMemoryMax = uint64_t{64} << 30;  // as much as the machine has
constexpr milliseconds kStartTimeout{60000};
constexpr milliseconds kEndTimeout{20000};

// How long nodes wait is for the user to say here too. What else PSCLOUD_* says is about another job.
std::optional<std::string> time_limit(const char* name) {
  return std::string_view(name).ends_with("_MS") ? process_environment()(name) : std::nullopt;
}

std::vector<std::string> time_limits() {
  std::vector<std::string> entries;
  for (const NodeVariable& variable : node_variables()) {
    const std::string name = variable.variable();
    if (const auto value = time_limit(name.c_str())) entries.push_back(name + "=" + *value);
  }
  return entries;
}

}  // namespace

ScratchCertificates::~ScratchCertificates() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

Result<std::string> ScratchCertificates::issue(Role role) {
  constexpr std::chrono::hours kValidity{24};
  if (folder_.empty()) {
    std::string pattern = (std::filesystem::temp_directory_path() / "pscloud-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      return unavailable("cannot make a folder for certificates in {}",
                         std::filesystem::temp_directory_path().string());
    }
    folder_ = pattern;
    TRY(make_ca(folder_ + "/ca", kJob, kValidity));
  }
  const std::string name(role_name(role));
  const std::string out = folder_ + "/" + name;
  if (!std::filesystem::exists(out)) TRY(issue_certificate(folder_ + "/ca", out, role, name, kValidity));
  return out;
}

Result<std::unique_ptr<LocalCluster>> LocalCluster::start(const LocalClusterSpec& spec, const Cancelled& cancelled) {
  std::unique_ptr<LocalCluster> cluster(new LocalCluster(spec));
  TRY(cluster->start_nodes(cancelled));
  return cluster;
}

Result<NodeOptions> LocalCluster::options_for(Role role) {
  NodeOptions options;
  TRY(apply_environment(time_limit, options));
  options.role = role;
  options.job = kJob;
  options.scheduler = scheduler_address_;
  options.http = "off";
  options.servers = spec_.servers;
  options.workers = spec_.workers;
  options.owners = spec_.server_threads;
  options.memory_max = kMemoryMax;
  options.local = worker_options_.local;
  options.insecure = spec_.transport.name == "tcp" || spec_.transport.shared_memory();
  options.shared_memory = spec_.transport.shared_memory();
  if (spec_.transport.name == "tls") options.tls_dir = TRY(certificates_.issue(role));
  return options;
}

Result<> LocalCluster::start_nodes(const Cancelled& cancelled) {
  const bool inproc = spec_.transport.name == "inproc";
  // Workers that have all cores leave none to a server.
  const bool busy = spec_.workers >= static_cast<int>(std::thread::hardware_concurrency());
  const auto work = busy ? LocalWork::kThreadsOfWorkers : LocalWork::kOwnThreads;
  if (inproc) worker_options_.local = make_local_network(work);
  scheduler_address_ = inproc ? "inproc:scheduler" : "127.0.0.1:0";
  scheduler_ = TRY(Node::start(TRY(options_for(Role::kScheduler))));
  scheduler_address_ = scheduler_->address();
  worker_options_ = TRY(options_for(Role::kWorker));
  if (!spec_.transport.own_processes()) {
    const NodeOptions options = TRY(options_for(Role::kServer));
    for (int i = 0; i < spec_.servers; ++i) server_threads_.push_back(TRY(Node::start(options)));
    return {};
  }
  for (int i = 0; i < spec_.servers; ++i) TRY(start_server_process());
  for (ServerProcess& server : server_processes_) {
    // It says where it is; workers hear that from the scheduler.
    const auto up = server.lines.read_line(kStartTimeout, cancelled);
    if (!up) return job_failed("a server did not start: {}", up.error().message);
  }
  return {};
}

Result<> LocalCluster::start_server_process() {
  const NodeOptions options = TRY(options_for(Role::kServer));
  std::vector<std::string> arguments{"node",        "--role",          "server",   "--quiet",
                                     "--scheduler", options.scheduler, "--job",    options.job,
                                     "--http",      options.http,      "--owners", std::to_string(options.owners)};
  arguments.insert(arguments.end(), {"--memory-max", std::to_string(options.memory_max)});
  if (options.insecure) arguments.emplace_back("--insecure");
  if (!options.shared_memory) arguments.insert(arguments.end(), {"--shared-memory", "0"});
  if (!options.tls_dir.empty()) arguments.insert(arguments.end(), {"--tls-dir", options.tls_dir});
  auto [ours, theirs] = TRY(LineChannel::make_pair());
  auto process = TRY(ChildProcess::start(arguments, time_limits(), std::move(theirs)));
  server_processes_.push_back({std::move(process), LineChannel(std::move(ours))});
  return {};
}

std::vector<std::string> LocalCluster::worker_environment() const {
  std::vector<std::string> environment = time_limits();
  environment.insert(environment.end(), {"PSCLOUD_ROLE=worker", "PSCLOUD_SCHEDULER=" + worker_options_.scheduler,
                                         "PSCLOUD_JOB=" + worker_options_.job});
  if (worker_options_.insecure) environment.emplace_back("PSCLOUD_INSECURE=1");
  if (!worker_options_.shared_memory) environment.emplace_back("PSCLOUD_SHARED_MEMORY=0");
  if (!worker_options_.tls_dir.empty()) environment.push_back("PSCLOUD_TLS_DIR=" + worker_options_.tls_dir);
  return environment;
}

double LocalCluster::server_cpu_s() const {
  if (server_processes_.empty()) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (const ServerProcess& server : server_processes_) sum += server.process.cpu_s();
  return sum;
}

double LocalCluster::server_own_bytes() const {
  if (server_processes_.empty()) return ChildProcess::own_bytes_of(0);
  double sum = 0;
  for (const ServerProcess& server : server_processes_) sum += server.process.own_bytes();
  return sum;
}

bool LocalCluster::has_lost_servers() const {
  return std::ranges::any_of(server_processes_, [](const ServerProcess& one) { return one.process.has_ended(); });
}

Result<> LocalCluster::wait() {
  for (auto& server : server_threads_) TRY(server->wait());
  for (ServerProcess& server : server_processes_) TRY(server.process.wait(kEndTimeout).at("a server"));
  return scheduler_->wait();
}

}  // namespace pscloud

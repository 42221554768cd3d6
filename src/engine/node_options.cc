#include "engine/message.h"
#include "net/address.h"
#include "pscloud/node.h"

namespace pscloud {
namespace {

constexpr int kOwnersMax = 256;  // in a job: each worker talks to all of them
constexpr int kWorkersMax = 16000;
static_assert(kWorkersMax + kOwnersMax < kNodesMax);  // a view names them all

bool is_inproc(std::string_view address) { return address.starts_with("inproc:"); }

Result<> between(std::string_view field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return {};
  return invalid("{} is {}: choose a number from {} to {}", field, value, low, high);
}

Result<> validate_counts(const NodeOptions& options) {
  TRY(between("servers", options.servers, 1, kOwnersMax));
  TRY(between("owners", options.owners, 1, kOwnersMax));
  if (options.servers * options.owners > kOwnersMax) {
    return invalid("{} servers of {} owners are {} owners: a job has at most {}, so choose fewer of either",
                   options.servers, options.owners, options.servers * options.owners, kOwnersMax);
  }
  TRY(between("workers", options.workers, 1, kWorkersMax));
  TRY(between("workers_min", options.workers_min, 0, options.workers));
  TRY(between("rank", options.rank, -1, INT32_MAX));
  if (options.memory_max == 0) return invalid("memory_max is 0: give the bytes that tables may take");
  if (options.queue_bytes_max == 0) return invalid("queue_bytes_max is 0: give the bytes that requests may take");
  return {};
}

Result<> validate_times(const NodeOptions& options) {
  TRY(between("request_timeout_ms", options.request_timeout_ms, 1, INT32_MAX));
  TRY(between("join_timeout_ms", options.join_timeout_ms, 1, INT32_MAX));
  TRY(between("heartbeat_ms", options.heartbeat_ms, 1, INT32_MAX));
  TRY(between("death_timeout_ms", options.death_timeout_ms, 1, INT32_MAX));
  TRY(between("stop_timeout_ms", options.stop_timeout_ms, 1, INT32_MAX));
  TRY(between("restart_wait_ms", options.restart_wait_ms, 0, INT32_MAX));
  if (options.heartbeat_ms >= options.death_timeout_ms) {
    return invalid(
        "heartbeat_ms is {} but death_timeout_ms {}: make the heartbeat shorter, a tenth is usual, "
        "or every node counts as dead",
        options.heartbeat_ms, options.death_timeout_ms);
  }
  return {};
}

Result<> check_plaintext_host(std::string_view field, std::string_view host) {
  if (is_private(host)) return {};
  return invalid(
      "{} is at {}, which is not a loopback or private IP address: plaintext is refused there; "
      "use certificates (tls_dir, made by `pscloud ca`) or a private address",
      field, host);
}

Result<> validate_addresses(const NodeOptions& options) {
  if (options.scheduler.empty()) {
    return invalid("the scheduler's address is not set: give host:port by --scheduler or PSCLOUD_SCHEDULER");
  }
  if (options.http.starts_with("unix:")) {
    if (!options.http.starts_with("unix:/") || !options.http.ends_with('/')) {
      return invalid("http: '{}' is no folder for a socket: unix:/path/of/folder/", options.http);
    }
  } else if (options.http != "auto" && options.http != "off") {
    TRY(parse_address(options.http).at("http"));
  }
  if (is_inproc(options.scheduler)) {
    if (options.local) return {};
    return invalid("{} needs a LocalNetwork shared by the nodes of this process: use host:port between processes",
                   options.scheduler);
  }
  const Address scheduler = TRY(parse_address(options.scheduler).at("scheduler"));
  if (scheduler.port == 0 && options.role != Role::kScheduler) {
    return invalid("{} has port 0: give the port where the scheduler really listens", options.scheduler);
  }
  const Address listen = TRY(parse_address(options.listen).at("listen"));

  if (!options.insecure) {
    if (!options.tls_dir.empty()) return {};
    return invalid(
        "tls_dir is not set: make certificates with `pscloud ca init` and `pscloud ca issue` and name their "
        "directory, or choose plaintext with insecure on a private network");
  }
  if (!options.tls_dir.empty()) {
    return invalid("both insecure and tls_dir are set: leave out one, so that nobody takes plaintext for TLS");
  }
  TRY(check_plaintext_host("scheduler", scheduler.host));
  if (options.role != Role::kServer) return {};
  TRY(check_plaintext_host("listen", listen.host));
  if (!options.advertise.empty()) TRY(check_plaintext_host("advertise", options.advertise));
  return {};
}

}  // namespace

Result<> validate(const NodeOptions& options) {
  if (options.job.empty() || options.job.size() > kNameBytesMax) {
    return invalid("job has {} bytes: give it a name of 1 to {}", options.job.size(), kNameBytesMax);
  }
  TRY(validate_counts(options));
  TRY(validate_times(options));
  return validate_addresses(options);
}

}  // namespace pscloud

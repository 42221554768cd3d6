#include "pscloud/environment.h"

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "base/text.h"
#include "engine/node_variables.h"
#include "net/address.h"

namespace pscloud {
namespace {

constexpr const char* kHostPort = "an address like 10.0.0.7:4000 or [::1]:4000";
constexpr const char* kCount = "a number from 1 to 16000";
constexpr const char* kMilliseconds = "milliseconds, from 1 to 86400000";
constexpr const char* kBytes = "a number of bytes above 0, with K, M, G or T for powers of 1024";

template <auto kField, int kLow, int kHigh>
bool set_number(const std::string& value, NodeOptions& options) {
  return parse_number(value, kLow, kHigh, options.*kField);
}

template <auto kField>
bool set_text(const std::string& value, NodeOptions& options) {
  options.*kField = value;
  return true;
}

template <auto kField>
bool set_address(const std::string& value, NodeOptions& options) {
  if (!value.starts_with("inproc:") && !parse_address(value)) return false;
  options.*kField = value;
  return true;
}

// "512", "64K", "8G".
template <auto kField>
bool set_bytes(const std::string& value, NodeOptions& options) {
  constexpr std::string_view kSuffixes = "KMGT";
  std::string digits = value;
  int shift = 0;
  const size_t power = digits.empty() ? std::string_view::npos : kSuffixes.find(digits.back() & ~0x20);  // either case
  if (power != std::string_view::npos) {
    digits.pop_back();
    shift = 10 * static_cast<int>(power + 1);
  }
  uint64_t number = 0;
  if (!parse_number(digits, uint64_t{1}, std::numeric_limits<uint64_t>::max() >> shift, number)) return false;
  options.*kField = number << shift;
  return true;
}

bool set_role(const std::string& value, NodeOptions& options) {
  for (const Role role : {Role::kScheduler, Role::kServer, Role::kWorker}) {
    if (value != role_name(role)) continue;
    options.role = role;
    return true;
  }
  return false;
}

bool set_http(const std::string& value, NodeOptions& options) {
  if (value == "auto" || value == "off" || value.starts_with("unix:/")) {
    options.http = value;
    return true;
  }
  return set_address<&NodeOptions::http>(value, options);
}

bool set_insecure(const std::string& value, NodeOptions& options) {
  options.insecure = value == "1";
  return value == "1" || value == "0";
}

bool set_shared_memory(const std::string& value, NodeOptions& options) {
  options.shared_memory = value == "1";
  return value == "1" || value == "0";
}

bool set_worker_death(const std::string& value, NodeOptions& options) {
  options.worker_death = value == "fail" ? WorkerDeath::kFail : WorkerDeath::kContinue;
  return value == "fail" || value == "continue";
}

constexpr int kIntMax = std::numeric_limits<int>::max();
constexpr int kDayMs = 86400000;

constexpr NodeVariable kVariables[] = {
    {"role", "", "worker", "ROLE", "scheduler, server or worker", "what this node is: scheduler, server or worker",
     "DMLC_ROLE", set_role},
    {"job", "", "pscloud", "NAME", "a name", "nodes of another job are refused", nullptr, set_text<&NodeOptions::job>},
    {"scheduler", "", "", "HOST:PORT", kHostPort, "where the scheduler listens", nullptr,
     set_address<&NodeOptions::scheduler>},
    {"listen", "server", "127.0.0.1:0", "HOST:PORT", kHostPort, "where a server listens; port 0 takes a free one",
     nullptr, set_address<&NodeOptions::listen>},
    {"advertise", "server", "", "HOST", "a host", "host to tell the others instead of that of listen", "DMLC_NODE_HOST",
     set_text<&NodeOptions::advertise>},
    {"http", "", "auto", "WHERE", "host:port, unix:/folder/, auto or off",
     "serves /health, /status and /metrics at this host:port; unix:/folder/: at a socket in it; auto: a free port of "
     "loopback; or off",
     nullptr, set_http},
    {"tls_dir", "", "", "DIR", "a directory", "ca.pem, node.pem and node.key as `pscloud ca issue` makes them", nullptr,
     set_text<&NodeOptions::tls_dir>},
    {"insecure", "", "0", "", "1 or 0", "plaintext on purpose; only on loopback or private addresses", nullptr,
     set_insecure},
    {"shared_memory", "", "1", "0|1", "1 or 0", "between workers and servers of one machine; 0: sockets only", nullptr,
     set_shared_memory},
    {"rank", "", "-1", "N", "a number from 0, or -1 for any", "wish for a rank", "DMLC_RANK",
     set_number<&NodeOptions::rank, -1, kIntMax>},
    {"servers", "scheduler", "1", "N", "a number from 1 to 256", "server processes to wait for", "DMLC_NUM_SERVER",
     set_number<&NodeOptions::servers, 1, 256>},
    {"workers", "scheduler", "1", "N", kCount, "places for workers", "DMLC_NUM_WORKER",
     set_number<&NodeOptions::workers, 1, 16000>},
    {"workers_min", "scheduler", "0", "N", "a number from 0 to 16000", "begin when so many are there; 0 waits for all",
     nullptr, set_number<&NodeOptions::workers_min, 0, 16000>},
    {"worker_death", "scheduler", "continue", "WHAT", "continue or fail",
     "what the rest do when a worker dies: continue or fail", nullptr, set_worker_death},
    {"restart_wait_ms", "scheduler", "5000", "MS", "milliseconds, from 0 to 86400000",
     "when every worker has died, how long to wait for a new one", nullptr,
     set_number<&NodeOptions::restart_wait_ms, 0, kDayMs>},
    {"owners", "server", "1", "N", "a number from 1 to 256", "threads, each with its part of every table", nullptr,
     set_number<&NodeOptions::owners, 1, 256>},
    {"memory_max", "server", "8G", "BYTES", kBytes, "for all tables of one owner; what they leave, for lists of keys",
     nullptr, set_bytes<&NodeOptions::memory_max>},
    {"queue_bytes_max", "worker", "256M", "BYTES", kBytes, "of requests under way, then push and pull block", nullptr,
     set_bytes<&NodeOptions::queue_bytes_max>},
    {"request_timeout_ms", "worker", "120000", "MS", kMilliseconds, "for the answer to a request", nullptr,
     set_number<&NodeOptions::request_timeout_ms, 1, kDayMs>},
    {"join_timeout_ms", "", "60000", "MS", kMilliseconds, "for the scheduler and the others to be there", nullptr,
     set_number<&NodeOptions::join_timeout_ms, 1, kDayMs>},
    {"heartbeat_ms", "", "500", "MS", kMilliseconds, "between signs of life", nullptr,
     set_number<&NodeOptions::heartbeat_ms, 1, kDayMs>},
    {"death_timeout_ms", "", "5000", "MS", kMilliseconds, "silent for so long: dead", nullptr,
     set_number<&NodeOptions::death_timeout_ms, 1, kDayMs>},
    {"stop_timeout_ms", "", "10000", "MS", kMilliseconds, "for the others' goodbye", nullptr,
     set_number<&NodeOptions::stop_timeout_ms, 1, kDayMs>},
};

// Many launchers set what they do not know to nothing, so an empty value counts as none.
std::optional<std::string> get(const Environment& environment, const std::string& name) {
  std::optional<std::string> value = environment(name.c_str());
  if (value && value->empty()) value.reset();
  return value;
}

Error wrong(const std::string& name, const std::string& value, std::string_view values) {
  return invalid("{} is \"{}\": it must be {}", name, value, values);
}

Result<uint16_t> parse_port(const std::string& name, const std::string& value) {
  int port = 0;
  if (!parse_number(value, 1, 65535, port)) return wrong(name, value, "a port from 1 to 65535");
  return static_cast<uint16_t>(port);
}

// What ps-lite says in more than one variable. Only asked where PSCLOUD_* is silent.
Result<> apply_dmlc_scheduler(const Environment& environment, NodeOptions& options) {
  const auto host = get(environment, "DMLC_PS_ROOT_URI");
  const auto port = get(environment, "DMLC_PS_ROOT_PORT");
  if (!host && !port) return {};
  if (!host || !port) {
    return invalid("{} is set but {} is not: both are needed to find the scheduler",
                   host ? "DMLC_PS_ROOT_URI" : "DMLC_PS_ROOT_PORT", host ? "DMLC_PS_ROOT_PORT" : "DMLC_PS_ROOT_URI");
  }
  const Address address{*host, TRY(parse_port("DMLC_PS_ROOT_PORT", *port))};
  if (!parse_address(address.text())) return wrong("DMLC_PS_ROOT_URI", *host, "a host name or IP address");
  options.scheduler = address.text();
  return {};
}

Result<> apply_dmlc_listen(const Environment& environment, NodeOptions& options) {
  // PORT means something else to many other programs, so it counts only where ps-lite's environment is set.
  const auto port = get(environment, "PORT");
  if (!port || !get(environment, "DMLC_PS_ROOT_URI")) return {};
  Address address = TRY(parse_address(options.listen));
  address.port = TRY(parse_port("PORT", *port));
  options.listen = address.text();
  return {};
}

Result<> apply_dmlc_rank(const Environment& environment, NodeOptions& options) {
  if (options.role == Role::kScheduler || get(environment, "DMLC_RANK")) return {};
  const std::string name = options.role == Role::kWorker ? "DMLC_WORKER_ID" : "DMLC_SERVER_ID";
  const auto value = get(environment, name);
  if (value && !parse_number(*value, 0, kIntMax, options.rank)) return wrong(name, *value, "a number from 0");
  return {};
}

}  // namespace

std::string NodeVariable::variable() const {
  std::string name = "PSCLOUD_";
  for (const char* c = field; *c != '\0'; ++c) name += static_cast<char>(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
  return name;
}

std::string NodeVariable::flag() const {
  std::string name = "--";
  for (const char* c = field; *c != '\0'; ++c) name += *c == '_' ? '-' : *c;
  return name;
}

std::span<const NodeVariable> node_variables() { return kVariables; }

Environment process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

Result<> apply_environment(const Environment& environment, NodeOptions& options) {
  for (const NodeVariable& variable : kVariables) {
    std::string name = variable.variable();
    auto value = get(environment, name);
    if (!value && variable.dmlc != nullptr) {
      name = variable.dmlc;
      value = get(environment, name);
    }
    if (value && !variable.set(*value, options)) return wrong(name, *value, variable.values);
  }
  if (!get(environment, "PSCLOUD_SCHEDULER")) TRY(apply_dmlc_scheduler(environment, options));
  if (!get(environment, "PSCLOUD_LISTEN")) TRY(apply_dmlc_listen(environment, options));
  if (!get(environment, "PSCLOUD_RANK")) TRY(apply_dmlc_rank(environment, options));
  return {};
}

}  // namespace pscloud

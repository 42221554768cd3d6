#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <vector>

#include "base/json.h"
#include "cli/bench/bench_flags.h"
#include "cli/bench/bench_verb.h"
#include "cli/bench/machine_limits.h"
#include "cli/bench/quantiles.h"
#include "cli/bench/raw_socket.h"
#include "cli/exit_code.h"
#include "cli/progress.h"

namespace pscloud {
namespace {

constexpr const char* kLimitsAbout = R"(What no parameter server can beat on this machine: loops over float32 that do
nothing else, and plain sockets between two processes. Medians of rounds that
alternate, in huge pages where the system lends them. Round trips are measured
on idle cores, which must first wake up, and on cores that are kept awake.

  pscloud bench limits
  pscloud bench limits --size-mb 1000 --json

The other benchmarks measure the limits that concern them in the same run.)";

constexpr int kLimitsRounds = 9;
constexpr size_t kRandomLines = 200000;
constexpr int kRoundTrips = 300;
constexpr size_t kSmallBytes = 64;

struct LimitsCommand {
  double size_mb = 100;
  bool json = false;
};

// Samples of each round.
struct Limits {
  std::vector<double> add_ms, add2_ms, copy_ms, read_ms, fresh_ms, line_ns, poll_ms, threads_ms;
  std::vector<double> tcp_us, tcp_warm_us, unix_us, unix_warm_us;

  double exchange_ms() const { return std::min(quantile(poll_ms, 0.5), quantile(threads_ms, 0.5)); }
};

Result<Limits> measure(size_t bytes) {
  ProgressLine progress;
  LimitBuffer target(bytes), source(bytes);
  RawSocketPeer tcp = TRY(RawSocketPeer::start(RawSocketKind::kTcp));
  RawSocketPeer unix_socket = TRY(RawSocketPeer::start(RawSocketKind::kUnix));
  TRY(tcp.exchange_ms(source.bytes(), target.bytes(), Duplex::kPoll));  // warms up
  Limits limits;
  for (int round = 0; round < kLimitsRounds; ++round) {
    progress.show(fmt::format("round {} of {}", round + 1, kLimitsRounds));
    limits.add_ms.push_back(measure_add_ms(target.floats(), source.floats(), 1));
    limits.add2_ms.push_back(measure_add_ms(target.floats(), source.floats(), 2));
    limits.copy_ms.push_back(measure_copy_ms(target.floats(), source.floats()));
    limits.read_ms.push_back(measure_read_ms(source.floats()));
    limits.fresh_ms.push_back(measure_fresh_fill_ms(bytes));
    limits.line_ns.push_back(measure_random_line_ns(target.floats(), kRandomLines, static_cast<uint64_t>(round)));
    limits.poll_ms.push_back(TRY(tcp.exchange_ms(source.bytes(), target.bytes(), Duplex::kPoll)));
    limits.threads_ms.push_back(TRY(tcp.exchange_ms(source.bytes(), target.bytes(), Duplex::kThreads)));
    TRY(tcp.round_trips(kSmallBytes, kRoundTrips, limits.tcp_us));
    TRY(unix_socket.round_trips(kSmallBytes, kRoundTrips, limits.unix_us));
    const WarmCores warm;
    TRY(tcp.round_trips(kSmallBytes, kRoundTrips, limits.tcp_warm_us));
    TRY(unix_socket.round_trips(kSmallBytes, kRoundTrips, limits.unix_warm_us));
  }
  return limits;
}

void print_json(double size_mb, const Limits& limits) {
  JsonWriter json;
  json.begin_object().field("size_mb", size_mb);
  json.field("limit_add_ms", quantile(limits.add_ms, 0.5)).field("limit_add2_ms", quantile(limits.add2_ms, 0.5));
  json.field("limit_memcpy_ms", quantile(limits.copy_ms, 0.5)).field("limit_read_ms", quantile(limits.read_ms, 0.5));
  json.field("limit_fresh_fill_ms", quantile(limits.fresh_ms, 0.5));
  json.field("limit_random_line_ns", quantile(limits.line_ns, 0.5));
  json.field("limit_socket_ms", limits.exchange_ms());
  json.field("limit_socket_gb_per_s", 2 * size_mb / limits.exchange_ms());
  json.field("tcp_round_trip_us", quantile(limits.tcp_us, 0.5));
  json.field("tcp_round_trip_warm_us", quantile(limits.tcp_warm_us, 0.5));
  json.field("unix_round_trip_us", quantile(limits.unix_us, 0.5));
  json.field("unix_round_trip_warm_us", quantile(limits.unix_warm_us, 0.5)).end_object();
  fmt::print("{}\n", json.text());
}

void print_text(double size_mb, const Limits& limits) {
  fmt::print("{:<32}{:>10}{:>10}\n", fmt::format("{} MB of float32", size_mb), "ms", "GB/s");
  // `times`: how often the bytes pass, as the rate counts them.
  const auto row = [size_mb](const char* name, double ms, int times) {
    fmt::print("{:<32}{:>10.2f}{:>10.2f}\n", name, ms, times * size_mb / ms);
  };
  row("add in place, 1 core", quantile(limits.add_ms, 0.5), 1);
  row("add in place, 2 cores", quantile(limits.add2_ms, 0.5), 1);
  row("memcpy", quantile(limits.copy_ms, 0.5), 1);
  row("read", quantile(limits.read_ms, 0.5), 1);
  row("fill fresh pages", quantile(limits.fresh_ms, 0.5), 1);
  row("TCP over loopback, both ways", limits.exchange_ms(), 2);
  fmt::print("\n{:<32}{:>10}{:>10}\n", "64 bytes", "idle", "awake");
  const auto trip = [](const char* name, const std::vector<double>& idle, const std::vector<double>& awake) {
    fmt::print("{:<32}{:>10.1f}{:>10.1f}\n", name, quantile(idle, 0.5), quantile(awake, 0.5));
  };
  trip("TCP round trip, us", limits.tcp_us, limits.tcp_warm_us);
  trip("unix socket round trip, us", limits.unix_us, limits.unix_warm_us);
  fmt::print("{:<32}{:>10.1f}\n", "random line changed, ns", quantile(limits.line_ns, 0.5));
}

int run_limits_command(const LimitsCommand& flags) {
  const auto limits = measure(static_cast<size_t>(flags.size_mb * 1e6) / 64 * 64);
  if (!limits) return fail(limits.error());
  flags.json ? print_json(flags.size_mb, *limits) : print_text(flags.size_mb, *limits);
  return kExitDone;
}

}  // namespace

void add_bench_limits(CLI::App& verb, Action& action) {
  const auto flags = std::make_shared<LimitsCommand>();
  add_number(verb, "--size-mb", flags->size_mb, 0.001, 100000.0, "of the memory that is worked on [100]", "MB");
  verb.add_flag("--json", flags->json, "for programs");
  verb.footer(kLimitsAbout);
  verb.callback([flags, &action] { action = [flags] { return run_limits_command(*flags); }; });
}

}  // namespace pscloud

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "cli/bench/bench_flags.h"
#include "cli/bench/bench_verb.h"
#include "cli/bench/quantiles.h"
#include "cli/bench/raw_socket.h"
#include "cli/exit_code.h"
#include "cli/interruption.h"
#include "cli/local/local_cluster.h"
#include "cli/progress.h"
#include "pscloud/worker.h"

namespace pscloud {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr const char* kRpcAbout = R"(One worker here pulls one small row, again and again, from a server that is a
process of its own. First one pull after the other: how long a round trip takes.
Then several at a time: how many a second.

  pscloud bench rpc
  pscloud bench rpc --size-bytes 4096 --in-flight 256 --transport tls --json
  pscloud bench rpc --beside-mb 100    # also while a large tensor is under way

In between, in the same run, two processes send as many bytes to and fro over a
plain blocking socket: ratio_to_limit is our round trip over theirs.)";

constexpr int kRpcRounds = 10;
// Without it most pulls would fall between two large requests, where they are quickest.
constexpr auto kBesidePause = std::chrono::milliseconds(1);

struct RpcCommand {
  LocalTransport transport;
  int size_bytes = 64;
  double seconds = 2;
  int in_flight = 64;
  int beside_mb = 0;
  bool json = false;
};

struct Outcome {
  std::string transport;  // what the worker got
  std::vector<double> pull_us, raw_us;
  std::vector<double> beside_us, large_ms;  // pulls beside a large request, and these
  uint64_t messages = 0;                    // with several in flight
  double seconds = 0;
  double round_trips_cpu_s = 0, messages_cpu_s = 0;  // of both ends

  double ratio() const { return quantile(pull_us, 0.5) / quantile(raw_us, 0.5); }
  double rate() const { return static_cast<double>(messages) / seconds; }
  double round_trip_cpu_us() const { return round_trips_cpu_s * 1e6 / static_cast<double>(pull_us.size()); }
  double message_cpu_us() const { return messages_cpu_s * 1e6 / static_cast<double>(messages); }
};

// Pushes and pulls a large tensor without a pause, by a thread of its own: what small requests of the same worker to
// other tables must not have to wait for.
class LargeRequests {
 public:
  static Result<LargeRequests> make(Worker& worker, int mb) {
    constexpr uint32_t kWidth = 256;
    TableSpec spec;
    spec.name = "large";
    spec.kind = TableKind::kDense;
    spec.width = kWidth;
    spec.rows = static_cast<uint64_t>(mb) * 1'000'000 / (kWidth * sizeof(float));
    const Table table = TRY(worker.create_table(spec));
    return LargeRequests(worker, table);
  }

  // Calls `meanwhile` while such requests are under way, from the second on: the first makes the memory.
  template <class Meanwhile>
  Result<> during(const Meanwhile& meanwhile, std::vector<double>& took_ms) {
    TRY(worker_.push_pull_rows(table_, 0, values_, out_).wait());
    Result<> pushed;
    std::jthread pushes([&](const std::stop_token& stop) {
      while (pushed && !stop.stop_requested()) {
        const auto start = SteadyClock::now();
        pushed = worker_.push_pull_rows(table_, 0, values_, out_).wait();
        took_ms.push_back(std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count());
      }
    });
    const Result<> measured = meanwhile();
    pushes.request_stop();
    pushes.join();
    TRY(measured);
    return pushed;
  }

 private:
  LargeRequests(Worker& worker, const Table& table)
      : worker_(worker), table_(table), values_(table.spec.rows * table.spec.width, 1.0f), out_(values_.size()) {}

  Worker& worker_;
  Table table_;
  std::vector<float> values_, out_;
};

class RpcRun {
 public:
  RpcRun(const RpcCommand& flags, LocalCluster& cluster, Worker& worker, const Table& table)
      : flags_(flags), cluster_(cluster), worker_(worker), table_(table) {}

  // Each for about so long; with a pause, as many begin in every moment, however long those before took.
  Result<> round_trips(SteadyClock::duration span, std::vector<double>& took_us, SteadyClock::duration pause = {}) {
    std::vector<float> row(table_.spec.width);
    for (const auto end = SteadyClock::now() + span; SteadyClock::now() < end;) {
      const auto start = SteadyClock::now();
      TRY(worker_.pull_rows(table_, 0, row).wait());
      took_us.push_back(std::chrono::duration<double, std::micro>(SteadyClock::now() - start).count());
      if (pause.count() > 0) std::this_thread::sleep_for(pause);
    }
    return {};
  }

  Result<> round_trips(SteadyClock::duration span, Outcome& outcome) {
    const double cpu_before = cpu_s();
    TRY(round_trips(span, outcome.pull_us));
    outcome.round_trips_cpu_s += cpu_s() - cpu_before;
    return {};
  }

  Result<> many(SteadyClock::duration span, Outcome& outcome) {
    const auto slots = static_cast<size_t>(flags_.in_flight);
    std::vector<std::vector<float>> rows(slots, std::vector<float>(table_.spec.width));
    std::deque<Ticket> tickets;
    const double cpu_before = cpu_s();
    const auto start = SteadyClock::now();
    uint64_t asked = 0;
    while (SteadyClock::now() < start + span) {
      if (tickets.size() == slots) {
        TRY(tickets.front().wait());
        tickets.pop_front();
      }
      tickets.push_back(worker_.pull_rows(table_, 0, rows[asked++ % slots]));
    }
    for (const Ticket& ticket : tickets) TRY(ticket.wait());
    outcome.seconds += std::chrono::duration<double>(SteadyClock::now() - start).count();
    outcome.messages += asked;
    outcome.messages_cpu_s += cpu_s() - cpu_before;
    return {};
  }

 private:
  // Of the worker, which is here, and of the server, if it is not.
  double cpu_s() const {
    return ChildProcess::cpu_s_of(0) + (flags_.transport.own_processes() ? cluster_.server_cpu_s() : 0);
  }

  const RpcCommand& flags_;
  LocalCluster& cluster_;
  Worker& worker_;
  const Table& table_;
};

Result<Outcome> measure(const RpcCommand& flags, const Cancelled& cancelled) {
  ProgressLine progress;
  progress.show("starting");
  const auto cluster = TRY(LocalCluster::start({.transport = flags.transport}, cancelled));
  RawSocketPeer peer = TRY(RawSocketPeer::start(RawSocketKind::kTcp));
  const auto worker = TRY(Worker::join(cluster->worker_options()));
  TableSpec spec;
  spec.name = "rpc";
  spec.kind = TableKind::kDense;
  spec.rows = 1;
  spec.width = static_cast<uint32_t>(flags.size_bytes) / sizeof(float);
  const Table table = TRY(worker->create_table(spec));
  std::optional<LargeRequests> large;
  if (flags.beside_mb > 0) large.emplace(TRY(LargeRequests::make(*worker, flags.beside_mb)));
  RpcRun run(flags, *cluster, *worker, table);
  const auto span =
      std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(flags.seconds / kRpcRounds));
  Outcome warm_up, outcome;
  outcome.transport = worker->transport();
  TRY(run.round_trips(span / 2, warm_up));
  TRY(run.many(span / 2, warm_up));
  TRY(peer.round_trips(static_cast<size_t>(flags.size_bytes), 100, warm_up.raw_us));
  for (int round = 0; round < kRpcRounds && !cancelled(); ++round) {
    progress.show(fmt::format("round {} of {}", round + 1, kRpcRounds));
    TRY(run.round_trips(span, outcome));
    // As long as ours, or nearly: they are the quicker ones.
    for (const auto end = SteadyClock::now() + span / 2; SteadyClock::now() < end;) {
      TRY(peer.round_trips(static_cast<size_t>(flags.size_bytes), 20, outcome.raw_us));
    }
    TRY(run.many(span, outcome));
    if (large)
      TRY(large->during([&] { return run.round_trips(span, outcome.beside_us, kBesidePause); }, outcome.large_ms));
  }
  TRY(worker->leave());
  TRY(cluster->wait());
  return outcome;
}

void print_json(const RpcCommand& flags, const Outcome& outcome) {
  const Quantiles pull(outcome.pull_us), raw(outcome.raw_us);
  JsonWriter json;
  json.begin_object().field("transport", outcome.transport).field("size_bytes", flags.size_bytes);
  json.field("seconds", flags.seconds).field("in_flight", flags.in_flight);
  json.field("us_p50", pull.p50).field("us_p99", pull.p99).field("us_min", pull.min);
  json.field("limit_us_p50", raw.p50).field("limit_us_p99", raw.p99).field("ratio_to_limit", outcome.ratio());
  json.field("messages_per_s", outcome.rate()).field("cpu_us_per_round_trip", outcome.round_trip_cpu_us());
  json.field("cpu_us_per_message", outcome.message_cpu_us());
  if (flags.beside_mb > 0) {
    const Quantiles beside(outcome.beside_us);
    json.field("beside_mb", flags.beside_mb).field("beside_us_p50", beside.p50).field("beside_us_p99", beside.p99);
    json.field("beside_large_ms_p50", Quantiles(outcome.large_ms).p50);
  }
  json.end_object();
  fmt::print("{}\n", json.text());
}

void print_text(const RpcCommand& flags, const Outcome& outcome) {
  fmt::print("a pull of {} bytes over {}, {}\n\n", flags.size_bytes, outcome.transport,
             flags.transport.own_processes() ? "own processes" : "threads of one process");
  fmt::print("{:<28}{:>10}{:>10}{:>10}\n", "round trip, microseconds", "p50", "p99", "min");
  const auto row = [](const char* name, const Quantiles& q) {
    fmt::print("{:<28}{:>10.1f}{:>10.1f}{:>10.1f}\n", name, q.p50, q.p99, q.min);
  };
  row("pull", Quantiles(outcome.pull_us));
  if (flags.beside_mb > 0) row(fmt::format("beside {} MB", flags.beside_mb).c_str(), Quantiles(outcome.beside_us));
  row("plain TCP socket, blocking", Quantiles(outcome.raw_us));
  fmt::print("\na round trip took {:.2f} times that of the socket, and {:.1f} us of CPU at both ends\n",
             outcome.ratio(), outcome.round_trip_cpu_us());
  fmt::print("{} in flight: {:.0f} thousand a second, {:.2f} us of CPU each\n", flags.in_flight, outcome.rate() * 1e-3,
             outcome.message_cpu_us());
  if (flags.beside_mb > 0) {
    fmt::print("a push and pull of {} MB beside it took {:.1f} ms\n", flags.beside_mb, Quantiles(outcome.large_ms).p50);
  }
}

int run_rpc_command(const RpcCommand& flags) {
  set_log_level(LogLevel::kWarning);
  if (const auto checked = check_transport(flags.transport); !checked) return fail(checked.error());
  if (flags.size_bytes % 4 != 0) {
    return fail(invalid("--size-bytes {} is no number of floats: they have 4 bytes each", flags.size_bytes));
  }
  const Interruption interruption;
  const auto outcome = measure(flags, interruption.cancelled());
  if (interruption.happened()) return fail_interrupted();
  if (!outcome) return fail(outcome.error());
  flags.json ? print_json(flags, *outcome) : print_text(flags, *outcome);
  return kExitDone;
}

}  // namespace

void add_bench_rpc(CLI::App& verb, Action& action) {
  const auto flags = std::make_shared<RpcCommand>();
  add_number(verb, "--size-bytes", flags->size_bytes, 4, 262144, "of the row, 4 for each float [64]");
  add_number(verb, "--seconds", flags->seconds, 0.01, 600.0, "for each of the two [2]", "S");
  add_number(verb, "--in-flight", flags->in_flight, 1, 65536, "pulls at a time, the second time [64]");
  add_number(verb, "--beside-mb", flags->beside_mb, 0, 10000, "of a tensor that is pushed and pulled beside it [0]");
  add_transport_flags(verb, flags->transport, false);
  verb.add_flag("--json", flags->json, "for programs");
  verb.footer(kRpcAbout);
  verb.callback([flags, &action] { action = [flags] { return run_rpc_command(*flags); }; });
}

}  // namespace pscloud

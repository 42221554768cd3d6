#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include "base/json.h"
#include "base/log.h"
#include "cli/bench/bench_flags.h"
#include "cli/bench/bench_sparse_run.h"
#include "cli/bench/bench_verb.h"
#include "cli/bench/quantiles.h"
#include "cli/exit_code.h"
#include "cli/interruption.h"

namespace pscloud {
namespace {

constexpr const char* kSparseAbout = R"(Fills a sparse table with --keys rows on a server that is a process of its own.
Then one worker here sends --rounds push_pulls of --batch keys each, sorted and
all different.

  pscloud bench sparse
  pscloud bench sparse --keys 1e6 --width 16 --distribution zipf
  pscloud bench sparse --cached

The limit is a plain array in this process. Between the rounds it gets the same
batches: at the place of each key it changes a row of the same shape, values
and what the updater keeps beside them, and reads the values. It has nothing to
find and no network.

Every batch has fresh keys. With --cached a few lists come again and again, and
the table has the key_caching filter, so that known lists do not travel.

Bytes a key are what the server's own memory grew by while it was filled; the
longest push of new keys tells of pauses in which the table grows.
Values are compared with the array's if the updater is add, else they must be
finite.)";

struct SparseCommand {
  SparseFlags sparse;
  bool json = false;
};

struct SparseSummary {
  double ns_per_key, limit_ns_per_key, mkeys_per_s, ratio, bytes_per_key;

  SparseSummary(const SparseFlags& flags, const SparseOutcome& outcome) {
    const auto keys = static_cast<double>(outcome.keys);
    ns_per_key = outcome.seconds * 1e9 / keys;
    limit_ns_per_key = outcome.limit_seconds * 1e9 / keys;
    mkeys_per_s = 1e3 / ns_per_key;
    ratio = ns_per_key / limit_ns_per_key;
    bytes_per_key = outcome.server_bytes / flags.keys;
  }
};

void print_json(const SparseFlags& flags, const SparseOutcome& outcome) {
  const SparseSummary s(flags, outcome);
  const Quantiles ms(outcome.batch_ms);
  JsonWriter json;
  json.begin_object().field("keys", static_cast<uint64_t>(flags.keys)).field("width", flags.width);
  json.field("batch", static_cast<uint64_t>(flags.batch)).field("rounds", flags.rounds);
  json.field("distribution", flags.distribution);
  if (flags.distribution == "zipf") json.field("zipf_s", flags.zipf_s);
  json.field("updater", flags.updater).field("cached", flags.cached).field("in_flight", flags.in_flight);
  json.field("server_threads", flags.server_threads).field("transport", outcome.transport);
  json.field("mkeys_per_s", s.mkeys_per_s).field("ns_per_key", s.ns_per_key);
  json.field("ms_p50", ms.p50).field("ms_p95", ms.p95).field("ms_p99", ms.p99).field("ms_min", ms.min);
  json.field("limit_ns_per_key", s.limit_ns_per_key).field("limit_mkeys_per_s", 1e3 / s.limit_ns_per_key);
  json.field("ratio_to_limit", s.ratio).field("server_bytes_per_key", s.bytes_per_key);
  const Quantiles fill(outcome.fill_ms);
  json.field("fill_s", outcome.fill_seconds).field("fill_ms_p50", fill.p50);
  json.field("fill_ms_max", std::ranges::max(outcome.fill_ms)).field("cpu_worker_s", outcome.cpu_worker_s);
  json.field("cpu_server_s", outcome.cpu_server_s).field("values_ok", outcome.values_ok).end_object();
  fmt::print("{}\n", json.text());
}

void print_text(const SparseFlags& flags, const SparseOutcome& outcome) {
  const SparseSummary s(flags, outcome);
  const Quantiles ms(outcome.batch_ms);
  fmt::print("push_pull of {:.0f} {} keys{} of {:.0f}, width {}, {}, {} in flight, over {}\n\n", flags.batch,
             flags.distribution, flags.cached ? ", known lists," : "", flags.keys, flags.width, flags.updater,
             flags.in_flight, outcome.transport);
  fmt::print("{:<28}{:>10}{:>10}\n", "", "Mkeys/s", "ns/key");
  fmt::print("{:<28}{:>10.2f}{:>10.1f}\n", "push_pull", s.mkeys_per_s, s.ns_per_key);
  fmt::print("{:<28}{:>10.2f}{:>10.1f}\n", "plain array, same keys", 1e3 / s.limit_ns_per_key, s.limit_ns_per_key);
  fmt::print("\na key took {:.2f} times the limit (plain array)\n", s.ratio);
  fmt::print("batch     p50 {:.2f} ms, p99 {:.2f} ms, from request to answer\n", ms.p50, ms.p99);
  fmt::print("memory    {:.1f} bytes a key on the server; filled in {:.1f} s\n", s.bytes_per_key, outcome.fill_seconds);
  fmt::print("growth    p50 {:.2f} ms, longest {:.2f} ms for a push of 100,000 new keys\n",
             Quantiles(outcome.fill_ms).p50, std::ranges::max(outcome.fill_ms));
  fmt::print("values    {}\n", outcome.values_ok ? "all right" : "WRONG");
}

Result<> check(const SparseFlags& flags) {
  TRY(check_transport(flags.transport));
  if (flags.batch > flags.keys) {
    return invalid("--batch {:.0f} is more than --keys {:.0f}: the keys of a batch are all different", flags.batch,
                   flags.keys);
  }
  return {};
}

int run_sparse_command(const SparseCommand& flags) {
  set_log_level(LogLevel::kWarning);
  if (const auto checked = check(flags.sparse); !checked) return fail(checked.error());
  const Interruption interruption;
  const auto outcome = run_sparse(flags.sparse, interruption.cancelled());
  if (interruption.happened()) return fail_interrupted();
  if (!outcome) return fail(outcome.error());
  flags.json ? print_json(flags.sparse, *outcome) : print_text(flags.sparse, *outcome);
  if (outcome->values_ok) return kExitDone;
  fmt::print(stderr, "pscloud: some values are wrong\n");
  return kExitFailed;
}

}  // namespace

void add_bench_sparse(CLI::App& verb, Action& action) {
  const auto flags = std::make_shared<SparseCommand>();
  SparseFlags& sparse = flags->sparse;
  add_number(verb, "--keys", sparse.keys, 1.0, 2e9, "rows of the table [1e7]");
  add_number(verb, "--width", sparse.width, 1u, 65536u, "floats of a row [1]");
  add_number(verb, "--batch", sparse.batch, 1.0, 1e8, "keys of a request [1e5]");
  add_choice(verb, "--distribution", sparse.distribution, {"uniform", "zipf"}, "of the keys: uniform or zipf [uniform]",
             "NAME");
  add_number(verb, "--zipf-s", sparse.zipf_s, 0.01, 10.0, "how hot the hot keys are [1.1]", "S");
  verb.add_option("--updater", sparse.updater, "of the table [ftrl]")->type_name("NAME");
  verb.add_flag("--cached", sparse.cached, "key lists that come again, and the key_caching filter");
  add_number(verb, "--in-flight", sparse.in_flight, 1, 1024, "requests at a time [2]");
  add_number(verb, "--server-threads", sparse.server_threads, 1, 64, "of the server [1]");
  add_number(verb, "--rounds", sparse.rounds, 1, 1000000, "requests in all [50]");
  add_transport_flags(verb, sparse.transport, false);
  verb.add_flag("--json", flags->json, "for programs");
  verb.footer(kSparseAbout);
  verb.callback([flags, &action] { action = [flags] { return run_sparse_command(*flags); }; });
}

}  // namespace pscloud

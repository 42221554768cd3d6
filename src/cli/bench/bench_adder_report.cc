#include "cli/bench/bench_adder_report.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "cli/bench/quantiles.h"

namespace pscloud {
namespace {

std::vector<double> field_of(const std::vector<AdderSample>& samples, double AdderSample::*field) {
  std::vector<double> values;
  for (const AdderSample& sample : samples) values.push_back(sample.*field);
  return values;
}

// Of the iterations in which push and pull were two steps.
std::vector<double> by_steps(const AdderFlags& flags, const AdderOutcome& outcome, double AdderSample::*field) {
  if (!outcome.apart.empty()) return field_of(outcome.apart, field);
  return flags.plan.sync && flags.cluster.workers > 1 ? outcome.all(field) : std::vector<double>{};
}

// The numbers of a report that are made of others.
struct AdderSummary {
  Quantiles iteration, apart, push, pull;
  double add, add2, copy, socket;
  double limit = NAN;
  std::string limit_name;
  double gb_per_s;

  AdderSummary(const AdderFlags& flags, const AdderOutcome& outcome)
      : iteration(outcome.all(&AdderSample::iteration_ms)),
        apart(field_of(outcome.apart, &AdderSample::iteration_ms)),
        push(by_steps(flags, outcome, &AdderSample::push_ms)),
        pull(by_steps(flags, outcome, &AdderSample::pull_ms)),
        add(quantile(outcome.add_ms, 0.5)),
        add2(quantile(outcome.add2_ms, 0.5)),
        copy(quantile(outcome.copy_ms, 0.5)),
        socket(quantile(outcome.socket_ms, 0.5)) {
    gb_per_s = adder_gb_per_s(flags, outcome);
    if (!std::isnan(socket)) {
      limit = socket;
      limit_name = "raw socket, both ways";
    } else if (flags.cluster.servers * flags.cluster.server_threads > 1) {
      limit = add2;
      limit_name = "add in place, 2 cores";
    } else {
      limit = add;
      limit_name = "add in place, 1 core";
    }
  }
};

std::string number(double value) { return std::isnan(value) ? "-" : fmt::format("{:.2f}", value); }

std::string counted(int count, const char* what) { return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s"); }

}  // namespace

// What the workers got; before they said so, what was asked for.
static std::string transport_of(const AdderFlags& flags, const AdderOutcome& outcome) {
  return outcome.transport.empty() ? flags.cluster.transport.name : outcome.transport;
}

double adder_gb_per_s(const AdderFlags& flags, const AdderOutcome& outcome) {
  // What all have moved, in the time of the one that took longest: they begin together, and how much of the time they
  // are at it together no single iteration tells.
  double longest_ms = 0;
  double iterations = 0;
  for (const auto& worker : outcome.samples) {
    double ms = 0;
    for (const AdderSample& sample : worker) ms += sample.iteration_ms;
    longest_ms = std::max(longest_ms, ms);
    iterations += static_cast<double>(worker.size());
  }
  return 2 * flags.plan.size_mb * iterations / longest_ms;  // MB/ms
}

void write_adder_question(JsonWriter& json, const AdderFlags& flags) {
  json.field("servers", flags.cluster.servers).field("server_threads", flags.cluster.server_threads);
  json.field("workers", flags.cluster.workers).field("size_mb", flags.plan.size_mb);
  json.field("iters", flags.iters).field("warmup", flags.warmup).field("mode", flags.plan.sync ? "sync" : "async");
}

void write_adder_answer(JsonWriter& json, const AdderFlags& flags, const AdderOutcome& outcome) {
  const AdderSummary s(flags, outcome);
  json.field("transport", transport_of(flags, outcome)).field("lent", flags.cluster.transport.lent);
  json.field("own_processes", flags.cluster.transport.own_processes());
  json.field("ms_p50", s.iteration.p50).field("ms_p95", s.iteration.p95).field("ms_p99", s.iteration.p99);
  json.field("ms_min", s.iteration.min).field("push_ms_p50", s.push.p50).field("pull_ms_p50", s.pull.p50);
  json.field("gb_per_s", s.gb_per_s);
  if (!outcome.apart.empty()) {
    json.field("apart_ms_p50", s.apart.p50).field("apart_ratio_to_limit", s.apart.p50 / s.limit);
  }
  json.field("limit_ms", s.limit).field("ratio_to_limit", s.iteration.p50 / s.limit);
  json.field("limit_add_ms", s.add).field("limit_add2_ms", s.add2).field("limit_memcpy_ms", s.copy);
  if (!std::isnan(s.socket)) json.field("limit_socket_ms", s.socket);
  json.field("cpu_worker_s", outcome.cpu_worker_s).field("cpu_server_s", outcome.cpu_server_s);
  json.field("cpu_s", outcome.cpu_s).field("values_ok", outcome.values_ok);
  if (!outcome.place) return;
  json.field("on", outcome.place->on).field("hosts", outcome.place->hosts).field("run", outcome.place->run);
  json.field("tensorboard", outcome.place->tensorboard);
  if (!outcome.place->unmeasured.empty()) json.field("limit_socket_unmeasured", outcome.place->unmeasured);
}

std::string adder_json(const AdderFlags& flags, const AdderOutcome& outcome) {
  JsonWriter json;
  json.begin_object();
  write_adder_question(json, flags);
  write_adder_answer(json, flags, outcome);
  return json.end_object().text();
}

std::string adder_text(const AdderFlags& flags, const AdderOutcome& outcome) {
  const AdderSummary s(flags, outcome);
  std::string text;
  const auto line = [&text]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    text += '\n';
  };
  const std::string where = outcome.place
                                ? fmt::format("on {} ({})", outcome.place->on, counted(outcome.place->hosts, "machine"))
                            : flags.cluster.transport.own_processes() ? "own processes"
                                                                      : "threads of one process";
  line("{} of {}, {}, {} MB each way, {} iterations, {}, over {}, {}", counted(flags.cluster.servers, "server"),
       counted(flags.cluster.server_threads, "thread"), counted(flags.cluster.workers, "worker"), flags.plan.size_mb,
       flags.iters, flags.plan.sync ? "sync" : "async", transport_of(flags, outcome), where);
  line("");
  line("{:<24}{:>10}{:>10}{:>10}{:>10}", "milliseconds", "p50", "p95", "p99", "min");
  const auto row = [&line](const char* name, const Quantiles& q) {
    line("{:<24}{:>10}{:>10}{:>10}{:>10}", name, number(q.p50), number(q.p95), number(q.p99), number(q.min));
  };
  const bool in_steps = flags.plan.sync && flags.cluster.workers > 1;
  row(in_steps ? "iteration" : "iteration (push_pull)", s.iteration);
  if (!outcome.apart.empty()) row("push, then pull", s.apart);
  if (!std::isnan(s.push.p50)) row("  push", s.push);
  if (!std::isnan(s.pull.p50)) row("  pull", s.pull);
  if (!std::isnan(s.add)) {
    line("");
    line("the same bytes, at least");
    if (!std::isnan(s.socket)) line("{:<24}{:>10}", "raw socket, both ways", number(s.socket));
    if (outcome.place && !outcome.place->unmeasured.empty()) {
      line("{:<24}{:>10}   not measured: {}", "raw socket, both ways", "-", outcome.place->unmeasured);
    }
    line("{:<24}{:>10}", "add in place, 1 core", number(s.add));
    line("{:<24}{:>10}", "add in place, 2 cores", number(s.add2));
    line("{:<24}{:>10}", "memcpy", number(s.copy));
    line("");
    line("an iteration took {} times the limit ({}){}", number(s.iteration.p50 / s.limit), s.limit_name,
         outcome.apart.empty() ? "" : fmt::format("; push, then pull {}", number(s.apart.p50 / s.limit)));
  } else {
    line("");
  }
  line("rate      {} GB/s, both directions", number(s.gb_per_s));
  const double to_ms = 1000.0 / flags.iters;
  if (std::isnan(outcome.cpu_server_s)) {
    line("cpu       {} ms an iteration, {}", number(outcome.cpu_s * to_ms),
         std::isnan(outcome.cpu_worker_s) ? "all together"
         : outcome.place                  ? "of workers"
                                          : "of this worker");
  } else {
    line("cpu       {} ms an iteration of workers, {} ms of servers", number(outcome.cpu_worker_s * to_ms),
         number(outcome.cpu_server_s * to_ms));
  }
  line("values    {}", outcome.values_ok ? "all right" : "WRONG");
  return text;
}

}  // namespace pscloud

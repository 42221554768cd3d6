#include "cli/bench/bench_adder_worker.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "cli/bench/machine_limits.h"
#include "cli/local/child_process.h"

namespace pscloud {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr std::chrono::hours kOrderTimeout{24};  // the leader measures other things between orders

double own_cpu_s() { return ChildProcess::cpu_s_of(0); }

double ms_between(SteadyClock::time_point start, SteadyClock::time_point end) {
  return std::chrono::duration<double, std::milli>(end - start).count();
}

}  // namespace

uint64_t AdderPlan::rows() const { return static_cast<uint64_t>(std::max(1.0, size_mb * 1e6 / sizeof(float))); }

Result<std::unique_ptr<AdderWorker>> AdderWorker::join(const NodeOptions& options, const AdderPlan& plan) {
  auto worker = TRY(Worker::join(options));
  TableSpec spec;
  spec.name = "adder";
  spec.kind = TableKind::kDense;
  spec.rows = plan.rows();
  const Table table = TRY(worker->create_table(spec));
  LentFloats ones;
  if (plan.lent) {
    ones = TRY(worker->lend(plan.rows()));
  } else {
    const auto own = std::make_shared<std::vector<float>>(plan.rows());
    ones = {*own, own};
  }
  std::ranges::fill(ones.values, 1.0f);
  TRY(worker->barrier());
  return std::unique_ptr<AdderWorker>(new AdderWorker(std::move(worker), table, plan, std::move(ones)));
}

AdderWorker::AdderWorker(std::unique_ptr<Worker> worker, Table table, const AdderPlan& plan, LentFloats ones)
    : worker_(std::move(worker)),
      table_(std::move(table)),
      plan_(plan),
      workers_(worker_->workers()),
      ones_(std::move(ones)),
      sums_(plan.lent ? 0 : plan.rows()) {}

void AdderWorker::check_values() {
  const auto expected = static_cast<float>(pushes_ * workers_);
  if (!view_) {
    values_ok_ &= all_equal(sums_, expected);
    return;
  }
  for (const TableView::Run& run : view_->runs()) values_ok_ &= all_equal(run.values, expected);
}

Result<> AdderWorker::pull() {
  if (!plan_.lent) return worker_->pull_rows(table_, 0, sums_).wait();
  view_ = TRY(worker_->view(table_));
  return {};
}

Result<AdderSample> AdderWorker::iterate() { return plan_.sync && workers_ > 1 ? iterate_apart() : iterate_in_one(); }

Result<AdderSample> AdderWorker::iterate_apart() {
  const bool alone = workers_ == 1;
  const double cpu_before = own_cpu_s();
  const auto start = SteadyClock::now();
  TRY(worker_->push_rows(table_, 0, ones_.values).wait());
  const auto pushed = SteadyClock::now();
  if (!alone) TRY(worker_->barrier());
  const auto all_pushed = SteadyClock::now();
  TRY(pull());
  const auto pulled = SteadyClock::now();
  if (!alone) TRY(worker_->barrier());
  const auto end = SteadyClock::now();
  const double cpu_s = own_cpu_s() - cpu_before;
  ++pushes_;
  check_values();
  // Untimed: or the next iteration of others would wait for this check.
  if (!alone) TRY(worker_->barrier());
  return AdderSample{ms_between(start, pushed), ms_between(all_pushed, pulled), ms_between(start, end), cpu_s, value()};
}

Result<AdderSample> AdderWorker::iterate_in_one() {
  const double cpu_before = own_cpu_s();
  const auto start = SteadyClock::now();
  if (plan_.lent) {
    const Ticket pushed = worker_->push_rows(table_, 0, ones_.values);
    TRY(pull());  // sees the push
    TRY(pushed.wait());
  } else {
    TRY(worker_->push_pull_rows(table_, 0, ones_.values, sums_).wait());
  }
  const auto end = SteadyClock::now();
  const double cpu_s = own_cpu_s() - cpu_before;
  ++pushes_;
  if (plan_.sync) check_values();
  return AdderSample{kUnknown, kUnknown, ms_between(start, end), cpu_s, value()};
}

Result<bool> AdderWorker::finish() {
  TRY(worker_->barrier());
  TRY(pull());
  check_values();
  TRY(worker_->leave());
  return values_ok_;
}

std::string encode_sample(const AdderSample& sample) {
  return fmt::format("sample {} {} {} {} {}", sample.push_ms, sample.pull_ms, sample.iteration_ms, sample.cpu_s,
                     sample.value);
}

Result<AdderSample> decode_sample(std::string_view line) {
  AdderSample sample;
  if (std::sscanf(std::string(line).c_str(), "sample %lf %lf %lf %lf %lf", &sample.push_ms, &sample.pull_ms,
                  &sample.iteration_ms, &sample.cpu_s, &sample.value) < 4) {  // other systems tell no value
    return corrupt("a worker said \"{}\"", line);
  }
  return sample;
}

std::string encode_error(const Error& error) {
  return fmt::format("error {} {}", static_cast<int>(error.code), error.message);
}

Result<std::string> decode_line(std::string line) {
  int code = 0, used = 0;
  if (std::sscanf(line.c_str(), "error %d %n", &code, &used) == 1) {
    return Error{static_cast<Code>(code), line.substr(static_cast<size_t>(used))};
  }
  return line;
}

namespace {

Result<> obey(const NodeOptions& options, const AdderPlan& plan, LineChannel& lines) {
  const auto worker = TRY(AdderWorker::join(options, plan));
  TRY(lines.write_line("ready " + worker->transport()));
  while (true) {
    const std::string order = TRY(lines.read_line(kOrderTimeout));
    if (order == "finish") return lines.write_line(TRY(worker->finish()) ? "values ok" : "values wrong");
    const bool apart = order.starts_with("apart ");
    const int count = std::atoi(order.c_str() + order.find(' ') + 1);
    TRY(worker->meet());
    for (int i = 0; i < count; ++i) {
      TRY(lines.write_line(encode_sample(TRY(apart ? worker->iterate_apart() : worker->iterate()))));
    }
  }
}

}  // namespace

Result<> serve_adder_worker(const NodeOptions& options, const AdderPlan& plan, LineChannel lines) {
  auto served = obey(options, plan, lines);
  if (!served) (void)lines.write_line(encode_error(served.error()));  // nobody may be there to hear it
  return served;
}

}  // namespace pscloud

#include "cli/bench/bench_sparse_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "cli/bench/key_batches.h"
#include "cli/bench/machine_limits.h"
#include "cli/local/local_cluster.h"
#include "cli/progress.h"
#include "pscloud/updater.h"
#include "pscloud/worker.h"

namespace pscloud {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr uint64_t kFillKeys = 100000;  // at a time
constexpr int kBlockBatches = 10;       // made, sent, and given to the plain array together
constexpr size_t kCachedLists = 4;
constexpr float kGradient = 0.5f;

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

// Rows of values and state, one after the other: what the table would be if keys were places.
class PlainArray {
 public:
  PlainArray(uint64_t rows, size_t width, size_t state)
      : width_(width), row_(width + state), memory_(rows * row_ * sizeof(float)) {
    std::ranges::fill(memory_.floats(), 0.0f);
  }

  // Changes every float of the rows and reads their values. `pushed` and `out` have `width` floats a key.
  void push_pull(std::span<const Key> keys, std::span<const float> pushed, std::span<float> out) {
    float* const memory = memory_.floats().data();
    const float* gradient = pushed.data();
    float* value = out.data();
    for (size_t i = 0; i < keys.size(); ++i) {
      if (i + kAhead < keys.size()) __builtin_prefetch(memory + keys[i + kAhead] * row_, 1);
      float* const row = memory + keys[i] * row_;
      for (size_t j = width_; j < row_; ++j) row[j] += *gradient;
      for (size_t j = 0; j < width_; ++j) *value++ = row[j] += *gradient++;
    }
  }

 private:
  static constexpr size_t kAhead = 16;
  const size_t width_, row_;
  LimitBuffer memory_;
};

class SparseRun {
 public:
  SparseRun(const SparseFlags& flags, const Cancelled& cancelled)
      : flags_(flags),
        cancelled_(cancelled),
        keys_(static_cast<uint64_t>(flags.keys)),
        batch_(static_cast<size_t>(flags.batch)),
        batches_(keys_, batch_, flags.distribution == "zipf" ? flags.zipf_s : 0, 1),
        gradients_(std::max<size_t>(batch_, kFillKeys) * flags.width, kGradient),
        expected_(gradients_.size()) {}

  Result<SparseOutcome> run();

 private:
  using Lists = std::vector<std::vector<Key>>;

  Result<> join();
  Result<> fill(ProgressLine& progress);
  Lists next_lists(int count);
  // Sends them all, measures, and leaves what the last one pulled in `pulled`.
  Result<> send(const Lists& lists, std::vector<float>& pulled);
  Result<> run_block(int count);

  std::span<const float> gradients_of(const std::vector<Key>& keys) const {
    return std::span(gradients_).first(keys.size() * flags_.width);
  }

  const SparseFlags& flags_;
  const Cancelled& cancelled_;
  const uint64_t keys_;
  const size_t batch_;
  KeyBatches batches_;
  Lists cached_;
  size_t next_cached_ = 0;
  const std::vector<float> gradients_;
  std::vector<float> expected_;  // what the plain array gave last
  std::unique_ptr<PlainArray> array_;
  std::unique_ptr<LocalCluster> cluster_;
  std::unique_ptr<Worker> worker_;
  Table table_;
  SparseOutcome outcome_;
};

Result<> SparseRun::join() {
  TableSpec spec;
  spec.name = "sparse";
  spec.width = flags_.width;
  spec.updater.name = flags_.updater;
  if (flags_.cached) spec.push_filters = {{FilterKind::kKeyCaching}};
  const auto updater = TRY(UpdaterCatalog().make(spec.updater).at("--updater"));
  array_ = std::make_unique<PlainArray>(keys_, flags_.width, updater->state_width(flags_.width));
  cluster_ =
      TRY(LocalCluster::start({.server_threads = flags_.server_threads, .transport = flags_.transport}, cancelled_));
  worker_ = TRY(Worker::join(cluster_->worker_options()));
  table_ = TRY(worker_->create_table(spec));
  return {};
}

Result<> SparseRun::fill(ProgressLine& progress) {
  const double bytes_before = cluster_->server_own_bytes();
  const auto start = SteadyClock::now();
  std::vector<Key> keys;
  for (uint64_t first = 0; first < keys_ && !cancelled_(); first += keys.size()) {
    keys.resize(std::min(kFillKeys, keys_ - first));
    std::iota(keys.begin(), keys.end(), first);
    const auto pushed = SteadyClock::now();
    TRY(worker_->push(table_, keys, gradients_of(keys)).wait());
    outcome_.fill_ms.push_back(seconds_since(pushed) * 1e3);
    array_->push_pull(keys, gradients_, expected_);
    progress.show(fmt::format("filling, {:.1f} of {:.1f} million keys", static_cast<double>(first + keys.size()) * 1e-6,
                              flags_.keys * 1e-6));
  }
  outcome_.fill_seconds = seconds_since(start);
  outcome_.server_bytes = cluster_->server_own_bytes() - bytes_before;
  return {};
}

SparseRun::Lists SparseRun::next_lists(int count) {
  while (flags_.cached && cached_.size() < kCachedLists) cached_.push_back(batches_.next());
  Lists lists;
  for (int i = 0; i < count; ++i) {
    lists.push_back(flags_.cached ? cached_[next_cached_++ % kCachedLists] : batches_.next());
  }
  return lists;
}

Result<> SparseRun::send(const Lists& lists, std::vector<float>& pulled) {
  struct Request {
    Ticket ticket;
    SteadyClock::time_point start;
  };
  const auto slots = static_cast<size_t>(flags_.in_flight);
  std::vector<std::vector<float>> rows(slots, std::vector<float>(batch_ * flags_.width));
  std::deque<Request> under_way;
  const auto end_first = [&]() -> Result<> {
    TRY(under_way.front().ticket.wait());
    outcome_.batch_ms.push_back(seconds_since(under_way.front().start) * 1e3);
    under_way.pop_front();
    return {};
  };
  const double worker_before = ChildProcess::cpu_s_of(0), servers_before = cluster_->server_cpu_s();
  const auto start = SteadyClock::now();
  for (size_t i = 0; i < lists.size(); ++i) {
    if (under_way.size() == slots) TRY(end_first());
    const std::span<float> out = std::span(rows[i % slots]).first(lists[i].size() * flags_.width);
    const auto now = SteadyClock::now();
    under_way.push_back({worker_->push_pull(table_, lists[i], gradients_of(lists[i]), out), now});
  }
  while (!under_way.empty()) TRY(end_first());
  outcome_.seconds += seconds_since(start);
  const double servers_s = cluster_->server_cpu_s() - servers_before;
  outcome_.cpu_server_s += servers_s;
  outcome_.cpu_worker_s += std::isnan(servers_s) ? servers_s : ChildProcess::cpu_s_of(0) - worker_before;
  for (const std::vector<Key>& list : lists) outcome_.keys += list.size();
  pulled = std::move(rows[(lists.size() - 1) % slots]);
  pulled.resize(lists.back().size() * flags_.width);
  return {};
}

Result<> SparseRun::run_block(int count) {
  const Lists lists = next_lists(count);
  std::vector<float> pulled;
  TRY(send(lists, pulled));
  const auto start = SteadyClock::now();
  for (const std::vector<Key>& list : lists) array_->push_pull(list, gradients_, expected_);
  outcome_.limit_seconds += seconds_since(start);
  // The array adds. Other updaters come to other numbers, but not to infinity.
  const bool exact = flags_.updater == "add";
  for (size_t i = 0; i < pulled.size(); ++i) {
    outcome_.values_ok &= exact ? pulled[i] == expected_[i] : std::isfinite(pulled[i]);
  }
  return {};
}

Result<SparseOutcome> SparseRun::run() {
  ProgressLine progress;
  progress.show("starting");
  TRY(join());
  TRY(fill(progress));
  // Once before it counts: connections and caches warm up, and the server learns the lists that come again.
  TRY(run_block(kBlockBatches));
  SparseOutcome before = std::exchange(outcome_, {});
  outcome_.transport = worker_->transport();
  outcome_.fill_seconds = before.fill_seconds;
  outcome_.fill_ms = std::move(before.fill_ms);
  outcome_.server_bytes = before.server_bytes;
  outcome_.values_ok = before.values_ok;
  for (int done = 0; done < flags_.rounds && !cancelled_();) {
    const int count = std::min(kBlockBatches, flags_.rounds - done);
    TRY(run_block(count));
    done += count;
    progress.show(fmt::format("{} of {} batches", done, flags_.rounds));
  }
  TRY(worker_->leave());
  TRY(cluster_->wait());
  return outcome_;
}

}  // namespace

Result<SparseOutcome> run_sparse(const SparseFlags& flags, const Cancelled& cancelled) {
  return SparseRun(flags, cancelled).run();
}

}  // namespace pscloud

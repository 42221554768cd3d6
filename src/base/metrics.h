#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pscloud {

// Labels of a metric, e.g. {{"table", "w"}, {"direction", "push"}}.
using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// A number that only grows. Thread-safe, and cheap enough for the data path.
class Counter {
 public:
  void add(uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// A number that goes up and down.
class Gauge {
 public:
  void set(double value) { value_.store(value, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

// Durations in microseconds, counted in buckets four of which make a power of two: what is read from them is at most a
// fifth off. Thread-safe, and cheap enough for the data path.
class Histogram {
 public:
  static constexpr size_t kBuckets = 148;  // up to three days; what lasts longer counts as that

  void add(uint64_t us) {
    counts_[bucket_of(us)].fetch_add(1, std::memory_order_relaxed);
    sum_us_.fetch_add(us, std::memory_order_relaxed);
  }
  uint64_t count(size_t bucket) const { return counts_[bucket].load(std::memory_order_relaxed); }
  uint64_t sum_us() const { return sum_us_.load(std::memory_order_relaxed); }

  static size_t bucket_of(uint64_t us) {
    if (us < 4) return us;
    const auto power = static_cast<size_t>(std::bit_width(us)) - 1;
    return std::min(4 * (power - 1) + ((us >> (power - 2)) & 3), kBuckets - 1);
  }
  // The least number that is too large for it.
  static uint64_t upper_us(size_t bucket) { return bucket < 4 ? bucket + 1 : (5 + bucket % 4) << (bucket / 4 - 1); }

 private:
  std::array<std::atomic<uint64_t>, kBuckets> counts_{};
  std::atomic<uint64_t> sum_us_{0};
};

// Counts of durations below each of some bounds, which rise: (upper bound, count in this bucket alone).
using DurationCounts = std::vector<std::pair<uint64_t, uint64_t>>;
// Those of a histogram that are not 0.
DurationCounts counts_of(const Histogram& histogram);
// The duration that a share `q` of them stays below; none if there are none.
std::optional<double> quantile(const DurationCounts& counts, double q);

// The metrics of one node. References stay valid as long as the registry; asking again for the same name and
// labels gives the same object. Thread-safe.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  Counter& counter(const std::string& name, const std::string& help, const MetricLabels& labels = {});
  Gauge& gauge(const std::string& name, const std::string& help, const MetricLabels& labels = {});

  Histogram& histogram(const std::string& name, const std::string& help, const MetricLabels& labels = {});

  // The sum of all of this name that have this label too, if one is given; none if there is no such metric.
  std::optional<double> total(const std::string& name, std::string_view label = {}, std::string_view value = {}) const;
  // The histogram without labels of this name; none if there is none.
  std::optional<DurationCounts> durations(const std::string& name) const;

  // In Prometheus' text format. Of a histogram, whose unit there is the second, each fourth bucket.
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pscloud

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
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

// The metrics of one node. References stay valid as long as the registry; asking again for the same name and
// labels gives the same object. Thread-safe.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  Counter& counter(const std::string& name, const std::string& help, const MetricLabels& labels = {});
  Gauge& gauge(const std::string& name, const std::string& help, const MetricLabels& labels = {});

  // In Prometheus' text format.
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pscloud

#include "base/metrics.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"

// The format: https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format

namespace pscloud {
namespace {

bool is_name(std::string_view text, std::string_view punctuation) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  for (const char c : text) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && punctuation.find(c) == std::string_view::npos) return false;
  }
  return true;
}

std::string escape(std::string_view text, bool quotes) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\\\";
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '"' && quotes) {
      result += "\\\"";
    } else {
      result += c;
    }
  }
  return result;
}

// name="value"
std::string label_text(std::string_view name, std::string_view value) {
  return fmt::format("{}=\"{}\"", name, escape(value, true));
}

// {a="1",b="2"}, or nothing.
std::string labels_text(const MetricLabels& labels) {
  if (labels.empty()) return {};
  std::string result;
  for (const auto& [name, value] : labels) {
    CHECK(is_name(name, "_"), "metric label \"{}\"", name);
    result += (result.empty() ? '{' : ',') + label_text(name, value);
  }
  return result + '}';
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

// Has this label, or none is asked for.
bool has_label(std::string_view labels, const std::string& label) {
  if (label.empty()) return true;
  const size_t at = labels.find(label);
  return at != std::string_view::npos && (labels[at - 1] == '{' || labels[at - 1] == ',');
}

std::string histogram_text(const std::string& name, const std::string& labels, const Histogram& histogram) {
  const std::string before = labels.empty() ? "{" : labels.substr(0, labels.size() - 1) + ',';
  std::string result;
  uint64_t below = 0;
  for (size_t i = 0; i < Histogram::kBuckets; ++i) {
    below += histogram.count(i);
    if (i % 4 != 3 || i + 1 == Histogram::kBuckets) continue;
    const double le = static_cast<double>(Histogram::upper_us(i)) / 1e6;
    result += fmt::format("{}_bucket{}le=\"{}\"}} {}\n", name, before, le, below);
  }
  result += fmt::format("{}_bucket{}le=\"+Inf\"}} {}\n", name, before, below);
  result += fmt::format("{}_sum{} {}\n", name, labels, static_cast<double>(histogram.sum_us()) / 1e6);
  return result + fmt::format("{}_count{} {}\n", name, labels, below);
}

}  // namespace

DurationCounts counts_of(const Histogram& histogram) {
  DurationCounts counts;
  for (size_t i = 0; i < Histogram::kBuckets; ++i) {
    if (const uint64_t count = histogram.count(i); count > 0) counts.emplace_back(Histogram::upper_us(i), count);
  }
  return counts;
}

std::optional<double> quantile(const DurationCounts& counts, double q) {
  uint64_t all = 0;
  for (const auto& [upper, count] : counts) all += count;
  if (all == 0) return std::nullopt;
  const double wanted = q * static_cast<double>(all);
  double below = 0;
  double value = 0;
  for (const auto& [upper, count] : counts) {
    if (count == 0) continue;
    // Where its bucket begins: those that hold nothing may be missing.
    const size_t bucket = Histogram::bucket_of(upper - 1);
    const double lower = bucket == 0 ? 0 : static_cast<double>(Histogram::upper_us(bucket - 1));
    const double share = std::min(1.0, (wanted - below) / static_cast<double>(count));
    value = lower + (static_cast<double>(upper) - lower) * std::max(0.0, share);
    below += static_cast<double>(count);
    if (below >= wanted) break;
  }
  return value;
}

struct Metrics::State {
  // All metrics of one name. Only one of the maps is used; all by the text of the labels.
  struct Family {
    std::string help;
    std::map<std::string, Counter> counters;
    std::map<std::string, Gauge> gauges;
    std::map<std::string, Histogram> histograms;

    const char* type() const {
      if (!histograms.empty()) return "histogram";
      return gauges.empty() ? "counter" : "gauge";
    }
  };

  mutable Mutex mutex;
  std::map<std::string, Family> families GUARDED_BY(mutex);

  Family& family(const std::string& name, const std::string& help) REQUIRES(mutex) {
    CHECK(is_name(name, "_:"), "metric \"{}\"", name);
    return families.try_emplace(name, Family{help, {}, {}, {}}).first->second;
  }
};

Metrics::Metrics() : state_(std::make_unique<State>()) {}
Metrics::~Metrics() = default;

Counter& Metrics::counter(const std::string& name, const std::string& help, const MetricLabels& labels) {
  MutexLock lock(state_->mutex);
  State::Family& family = state_->family(name, help);
  CHECK(family.gauges.empty() && family.histograms.empty(), "{} is a {} already", name, family.type());
  return family.counters[labels_text(labels)];
}

Gauge& Metrics::gauge(const std::string& name, const std::string& help, const MetricLabels& labels) {
  MutexLock lock(state_->mutex);
  State::Family& family = state_->family(name, help);
  CHECK(family.counters.empty() && family.histograms.empty(), "{} is a {} already", name, family.type());
  return family.gauges[labels_text(labels)];
}

Histogram& Metrics::histogram(const std::string& name, const std::string& help, const MetricLabels& labels) {
  MutexLock lock(state_->mutex);
  State::Family& family = state_->family(name, help);
  CHECK(family.counters.empty() && family.gauges.empty(), "{} is a {} already", name, family.type());
  return family.histograms[labels_text(labels)];
}

std::optional<double> Metrics::total(const std::string& name, std::string_view label, std::string_view value) const {
  const std::string wanted = label.empty() ? std::string() : label_text(label, value);
  MutexLock lock(state_->mutex);
  const auto found = state_->families.find(name);
  if (found == state_->families.end()) return std::nullopt;
  double sum = 0;
  for (const auto& [labels, counter] : found->second.counters) {
    if (has_label(labels, wanted)) sum += static_cast<double>(counter.value());
  }
  for (const auto& [labels, gauge] : found->second.gauges) {
    if (has_label(labels, wanted)) sum += gauge.value();
  }
  return sum;
}

std::optional<DurationCounts> Metrics::durations(const std::string& name) const {
  MutexLock lock(state_->mutex);
  const auto family = state_->families.find(name);
  if (family == state_->families.end()) return std::nullopt;
  const auto found = family->second.histograms.find("");
  if (found == family->second.histograms.end()) return std::nullopt;
  return counts_of(found->second);
}

std::string Metrics::text() const {
  MutexLock lock(state_->mutex);
  std::string result;
  for (const auto& [name, family] : state_->families) {
    result += fmt::format("# HELP {} {}\n", name, escape(family.help, false));
    result += fmt::format("# TYPE {} {}\n", name, family.type());
    for (const auto& [labels, counter] : family.counters) {
      result += fmt::format("{}{} {}\n", name, labels, counter.value());
    }
    for (const auto& [labels, gauge] : family.gauges) {
      result += fmt::format("{}{} {}\n", name, labels, number_text(gauge.value()));
    }
    for (const auto& [labels, histogram] : family.histograms) result += histogram_text(name, labels, histogram);
  }
  return result;
}

}  // namespace pscloud

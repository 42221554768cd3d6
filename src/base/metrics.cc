#include "base/metrics.h"

#include <fmt/core.h>

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

// {a="1",b="2"}, or nothing.
std::string labels_text(const MetricLabels& labels) {
  if (labels.empty()) return {};
  std::string result;
  for (const auto& [name, value] : labels) {
    CHECK(is_name(name, "_"), "metric label \"{}\"", name);
    result += fmt::format("{}{}=\"{}\"", result.empty() ? '{' : ',', name, escape(value, true));
  }
  return result + '}';
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

}  // namespace

struct Metrics::State {
  // All metrics of one name. Only one of the two maps is used; both by the text of the labels.
  struct Family {
    std::string help;
    std::map<std::string, Counter> counters;
    std::map<std::string, Gauge> gauges;
  };

  mutable Mutex mutex;
  std::map<std::string, Family> families GUARDED_BY(mutex);

  Family& family(const std::string& name, const std::string& help) REQUIRES(mutex) {
    CHECK(is_name(name, "_:"), "metric \"{}\"", name);
    return families.try_emplace(name, Family{help, {}, {}}).first->second;
  }
};

Metrics::Metrics() : state_(std::make_unique<State>()) {}
Metrics::~Metrics() = default;

Counter& Metrics::counter(const std::string& name, const std::string& help, const MetricLabels& labels) {
  MutexLock lock(state_->mutex);
  State::Family& family = state_->family(name, help);
  CHECK(family.gauges.empty(), "{} is a gauge already", name);
  return family.counters[labels_text(labels)];
}

Gauge& Metrics::gauge(const std::string& name, const std::string& help, const MetricLabels& labels) {
  MutexLock lock(state_->mutex);
  State::Family& family = state_->family(name, help);
  CHECK(family.counters.empty(), "{} is a counter already", name);
  return family.gauges[labels_text(labels)];
}

std::string Metrics::text() const {
  MutexLock lock(state_->mutex);
  std::string result;
  for (const auto& [name, family] : state_->families) {
    result += fmt::format("# HELP {} {}\n", name, escape(family.help, false));
    result += fmt::format("# TYPE {} {}\n", name, family.gauges.empty() ? "counter" : "gauge");
    for (const auto& [labels, counter] : family.counters) {
      result += fmt::format("{}{} {}\n", name, labels, counter.value());
    }
    for (const auto& [labels, gauge] : family.gauges) {
      result += fmt::format("{}{} {}\n", name, labels, number_text(gauge.value()));
    }
  }
  return result;
}

}  // namespace pscloud

#include "launch/agent/node_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json.h"

namespace pscloud {
namespace {

constexpr size_t kNodeFiguresMax = 64;
constexpr size_t kBoundsMax = 1000;

bool is_a_maximum(std::string_view name) {
  return name == "staleness" || name == "staleness_max" || name == "heartbeat_age_ms";
}

using Counts = std::map<uint64_t, uint64_t>;

// [[upper, count], ...]
void add_counts(const JsonValue& list, Counts& counts) {
  for (const JsonValue& pair : list.items()) {
    if (pair.items().size() != 2) continue;
    const int64_t upper = pair.items()[0].integer(-1);
    const int64_t count = pair.items()[1].integer(-1);
    if (upper > 0 && count > 0 && counts.size() < kBoundsMax) {
      counts[static_cast<uint64_t>(upper)] += static_cast<uint64_t>(count);
    }
  }
}

// What has come since; all of it if the nodes were started anew.
DurationCounts since(const Counts& before, const Counts& now) {
  DurationCounts news;
  for (const auto& [upper, count] : now) {
    const auto old = before.find(upper);
    const uint64_t counted = old == before.end() || old->second > count ? 0 : old->second;
    if (count > counted) news.emplace_back(upper, count - counted);
  }
  return news;
}

}  // namespace

Figures NodeFigures::take(std::span<const JsonValue> statuses) {
  std::map<std::string, double> sums;
  std::map<std::string, Counts, std::less<>> durations;
  for (const JsonValue& status : statuses) {
    for (const auto& [name, value] : status["samples"].members()) {
      const double number = value.number(std::numeric_limits<double>::quiet_NaN());
      if (!std::isfinite(number) || !is_figure_name(name) || sums.size() >= kNodeFiguresMax) continue;
      double& sum = sums[name];
      sum = is_a_maximum(name) ? std::max(sum, number) : sum + number;
    }
    for (const auto& [name, list] : status["latency_us"].members()) {
      if (is_figure_name(name + "_ms_p50") && durations.size() < kNodeFiguresMax) add_counts(list, durations[name]);
    }
  }
  for (const auto& [name, counts] : durations) {
    const DurationCounts news = since(last_[name], counts);
    if (news.empty()) continue;
    sums[name + "_ms_p50"] = *quantile(news, 0.5) / 1000;
    sums[name + "_ms_p99"] = *quantile(news, 0.99) / 1000;
  }
  last_ = std::move(durations);
  Figures figures;
  for (const auto& [name, sum] : sums) {
    if (std::isfinite(sum)) figures.emplace_back(name, sum);
  }
  return figures;
}

std::string joined_status(std::span<const std::string> texts, std::span<const JsonValue> statuses) {
  if (texts.empty()) return "";
  if (texts.size() == 1) return texts.front();
  JsonWriter json;
  json.begin_object().field("role", statuses.front()["role"].text()).key("waiting_for").begin_array();
  for (const JsonValue& status : statuses) {
    for (const JsonValue& name : status["waiting_for"].items()) json.value(name.text());
  }
  json.end_array().key("hot_keys").begin_array();
  for (const JsonValue& status : statuses) {
    for (const JsonValue& pair : status["hot_keys"].items()) {
      if (pair.items().size() != 2) continue;
      json.begin_array().value(pair.items()[0].text()).value(pair.items()[1].integer()).end_array();
    }
  }
  json.end_array().end_object();
  std::string result = json.text();
  result.back() = ',';
  return result + fmt::format("\"parts\":[{}]}}", fmt::join(texts, ","));
}

}  // namespace pscloud

#include "engine/node_status.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace pscloud {
namespace {

constexpr const char* kPlainText = "text/plain; charset=utf-8";

// A figure of a node and the metrics that it is the sum of.
struct Sample {
  const char* name;
  const char* metric;
  const char* label = "";
  const char* value = "";
};
constexpr Sample kSamples[] = {
    {"push_bytes", "pscloud_wire_bytes_total", "direction", "push"},
    {"pull_bytes", "pscloud_wire_bytes_total", "direction", "pull"},
    {"requests", "pscloud_requests_total"},
    {"keys", "pscloud_keys"},
    // A node has one or the other: workers that go by clocks, or servers of tables without.
    {"staleness", "pscloud_clock_distance"},
    {"staleness_max", "pscloud_clock_distance"},
    {"staleness", "pscloud_staleness"},
    {"staleness_max", "pscloud_staleness_max"},
    {"heartbeat_age_ms", "pscloud_heartbeat_age_ms"},
};
constexpr std::pair<const char*, const char*> kLatencies[] = {{"push", "pscloud_push_seconds"},
                                                              {"pull", "pscloud_pull_seconds"}};

}  // namespace

void write_names(JsonWriter& json, std::string_view name, std::span<const std::string> texts) {
  json.key(name).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

// Keys are text: readers that know no integers above 2^53 would change them.
void write_hot_keys(JsonWriter& json, std::span<const HotKeys::HotKey> keys) {
  json.key("hot_keys").begin_array();
  for (const auto& [key, count] : keys) json.begin_array().value(fmt::format("{}", key)).value(count).end_array();
  json.end_array();
}

std::string with_samples(std::string status, const Metrics& metrics) {
  CHECK(status.ends_with('}'), "a status is an object");
  JsonWriter json;
  json.begin_object().key("samples").begin_object();
  for (const Sample& sample : kSamples) {
    const auto total = metrics.total(sample.metric, sample.label, sample.value);
    if (total) json.field(sample.name, *total);
  }
  json.end_object().key("latency_us").begin_object();
  for (const auto& [name, metric] : kLatencies) {
    const auto counts = metrics.durations(metric);
    if (!counts) continue;
    json.key(name).begin_array();
    for (const auto& [upper, count] : *counts) json.begin_array().value(upper).value(count).end_array();
    json.end_array();
  }
  json.end_object();
  for (const auto& [name, metric] : kLatencies) {
    const auto counts = metrics.durations(metric);
    for (const int percent : {50, 99}) {
      const auto us = counts ? quantile(*counts, percent / 100.0) : std::nullopt;
      if (us) json.field(fmt::format("{}_ms_p{}", name, percent), *us / 1000);
    }
  }
  status.back() = ',';
  return status + json.end_object().text().substr(1);
}

Result<std::unique_ptr<HttpServer>> serve_status(const NodeOptions& options, std::function<std::string()> status,
                                                 const Metrics& metrics) {
  const bool automatic = options.http == "auto";
  if (options.http == "off" || (automatic && options.scheduler.starts_with("inproc:"))) {
    return std::unique_ptr<HttpServer>();
  }
  HttpRoutes routes;
  routes["/health"] = [] { return HttpReply{200, kPlainText, "ok\n"}; };
  routes["/status"] = [status = std::move(status), &metrics] {
    std::string json = status();
    if (json.empty()) return HttpReply{503, kPlainText, "the node's thread does not answer\n"};
    return HttpReply{200, "application/json", with_samples(std::move(json), metrics) + "\n"};
  };
  routes["/metrics"] = [&metrics] {
    return HttpReply{200, "text/plain; version=0.0.4; charset=utf-8", metrics.text()};
  };
  auto server = HttpServer::start(automatic ? "127.0.0.1:0" : options.http, std::move(routes));
  if (server || !options.http.starts_with("unix:")) return server;
  // A launcher wanted it, for those who look on. The job goes on without them.
  log_warning("nobody can see how this node is: {}", server.error().message);
  return std::unique_ptr<HttpServer>();
}

}  // namespace pscloud

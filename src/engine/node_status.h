#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/metrics.h"
#include "engine/server/hot_keys.h"
#include "net/http_server.h"
#include "pscloud/node.h"

namespace pscloud {

// Serves /health, /status and /metrics of a node, if `options` ask for it; null if not. `status` is a JSON object, or
// empty if the node's thread does not answer. docs/node-status.md has what is told.
Result<std::unique_ptr<HttpServer>> serve_status(const NodeOptions& options, std::function<std::string()> status,
                                                 const Metrics& metrics);

// `status`, an object, with the figures of a node behind what it has: "samples", "latency_us".
std::string with_samples(std::string status, const Metrics& metrics);

// Parts of a status.
void write_names(JsonWriter& json, std::string_view name, std::span<const std::string> texts);
void write_hot_keys(JsonWriter& json, std::span<const HotKeys::HotKey> keys);

}  // namespace pscloud

// What an owner tells of itself at /status.

#include <set>

#include "base/json.h"
#include "engine/node_status.h"
#include "engine/server/shard_owner.h"

namespace pscloud {

std::vector<std::string> ShardOwner::waiting_for() const {
  std::set<std::string> names;
  if (std::string text = member_.waiting_for(); !text.empty()) names.insert(std::move(text));
  for (const auto& [id, session] : sessions_) {
    if (!session.waiting.empty()) names.insert(holding_back(session.waiting.front().needed));
  }
  return {names.begin(), names.end()};
}

std::vector<HotKeys::HotKey> ShardOwner::hot_keys() const {
  std::vector<HotKeys::HotKey> keys;
  for (const auto& [id, table] : tables_) {
    const auto top = table.hot.top(kHotKeysTold);
    keys.insert(keys.end(), top.begin(), top.end());
  }
  return hottest(std::move(keys), kHotKeysTold);
}

std::string ShardOwner::status_json() const {
  JsonWriter json;
  const NodeInfo* self = member_.self();
  json.begin_object();
  json.field("role", "server").field("name", self ? self->name() : std::string("server"));
  json.field("joined", self != nullptr);
  write_names(json, "waiting_for", waiting_for());
  json.field("min_clock", gate_.minimum()).field("bytes", table_bytes());
  json.key("tables").begin_array();
  for (const auto& [id, table] : tables_) {
    const TableSpec& spec = table.rows->spec();
    json.begin_object().field("name", spec.name).field("width", spec.width).field("updater", spec.updater.name);
    json.field("rows", table.rows->rows()).field("bytes", table.rows->bytes());
    write_hot_keys(json, table.hot.top(kHotKeysTold));
    json.end_object();
  }
  json.end_array();
  json.key("workers").begin_array();
  for (const auto& [id, session] : sessions_) {
    json.begin_object().field("name", session.info.name()).field("connected", session.lane != 0);
    json.field("requests", session.stream.accepted()).field("clock", gate_.clock(id));
    json.field("held_bytes", session.stream.held_bytes() + session.waiting_bytes);
    if (!session.waiting.empty()) json.field("waiting_for", holding_back(session.waiting.front().needed));
    json.end_object();
  }
  json.end_array();
  write_hot_keys(json, hot_keys());
  return json.end_object().text();
}

}  // namespace pscloud

// What an owner tells of itself at /status.

#include "base/json.h"
#include "engine/server/shard_owner.h"

namespace pscloud {

std::string ShardOwner::status_json() const {
  JsonWriter json;
  const NodeInfo* self = member_.self();
  json.begin_object();
  json.field("role", "server").field("name", self ? self->name() : std::string("server"));
  json.field("joined", self != nullptr).field("waiting_for", member_.waiting_for());
  json.field("min_clock", gate_.minimum()).field("bytes", table_bytes());
  json.key("tables").begin_array();
  for (const auto& [id, table] : tables_) {
    const TableSpec& spec = table.rows->spec();
    json.begin_object().field("name", spec.name).field("width", spec.width).field("updater", spec.updater.name);
    json.field("rows", table.rows->rows()).field("bytes", table.rows->bytes()).end_object();
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
  json.end_array().end_object();
  return json.text();
}

}  // namespace pscloud

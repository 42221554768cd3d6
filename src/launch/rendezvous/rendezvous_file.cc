#include "launch/rendezvous/rendezvous_file.h"

#include "base/json.h"
#include "base/json_value.h"

namespace pscloud {

std::string arrival_json(const Arrival& arrival) {
  JsonWriter json;
  json.begin_object().field("job", arrival.job).field("task", arrival.task.text()).field("attempt", arrival.attempt);
  json.field("address", arrival.address.text()).field("host", arrival.host);
  json.field("pid", arrival.pid).field("version", arrival.version);
  return json.end_object().text();
}

Result<Arrival> parse_arrival(std::string_view json) {
  const JsonValue value = TRY(JsonValue::parse(json));
  Arrival arrival;
  arrival.job = value["job"].text();
  arrival.task = TRY(parse_task_id(value["task"].text()));
  arrival.attempt = static_cast<int>(value["attempt"].integer());
  arrival.address = TRY(parse_address(value["address"].text()));
  arrival.host = value["host"].text();
  arrival.pid = value["pid"].integer();
  arrival.version = value["version"].text();
  return arrival;
}

std::string folder_order_json(const FolderOrder& order) {
  JsonWriter json;
  json.begin_object().field("job", order.job).field("at_once", order.at_once);
  json.field("reason", order.reason).field("code", order.code);
  return json.end_object().text();
}

Result<FolderOrder> parse_folder_order(std::string_view json) {
  const JsonValue value = TRY(JsonValue::parse(json));
  FolderOrder order;
  order.job = value["job"].text();
  order.at_once = value["at_once"].truth();
  order.reason = value["reason"].text();
  order.code = static_cast<int>(value["code"].integer(1));
  if (order.job.empty()) return corrupt("an order without a job");
  return order;
}

}  // namespace pscloud

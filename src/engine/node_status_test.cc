#include "engine/node_status.h"

#include <gtest/gtest.h>

#include "base/json_value.h"

namespace pscloud {
namespace {

TEST(NodeStatus, FiguresStandBehindWhatTheNodeSays) {
  Metrics metrics;
  metrics.counter("pscloud_wire_bytes_total", "h", {{"table", "a"}, {"direction", "push"}}).add(3);
  metrics.counter("pscloud_wire_bytes_total", "h", {{"table", "b"}, {"direction", "push"}}).add(4);
  metrics.gauge("pscloud_keys", "h", {{"table", "a"}, {"owner", "0"}}).set(10);
  metrics.gauge("pscloud_keys", "h", {{"table", "a"}, {"owner", "1"}}).set(20);
  Histogram& pushes = metrics.histogram("pscloud_push_seconds", "h");
  for (int i = 0; i < 99; ++i) pushes.add(1000);
  pushes.add(100000);

  const auto status = JsonValue::parse(with_samples(R"({"role":"server"})", metrics));
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ((*status)["role"].text(), "server");
  EXPECT_EQ((*status)["samples"]["push_bytes"].number(), 7);
  EXPECT_EQ((*status)["samples"]["pull_bytes"].number(-1), 0);
  EXPECT_EQ((*status)["samples"]["keys"].number(), 30);
  EXPECT_TRUE((*status)["samples"]["requests"].is(JsonValue::Kind::kNull)) << "a worker has none";
  EXPECT_NEAR((*status)["push_ms_p50"].number(), 1, 0.2);
  EXPECT_NEAR((*status)["push_ms_p99"].number(), 1, 0.2);
  EXPECT_EQ((*status)["latency_us"]["push"].items().size(), 2u);
  EXPECT_EQ((*status)["latency_us"]["push"].items()[1].items()[1].integer(), 1);
}

TEST(NodeStatus, AKeyOfSixtyFourBitsIsText) {
  JsonWriter json;
  json.begin_object();
  write_hot_keys(json, std::vector<HotKeys::HotKey>{{UINT64_MAX, 5}});
  EXPECT_EQ(json.end_object().text(), R"({"hot_keys":[["18446744073709551615",5]]})");
}

}  // namespace
}  // namespace pscloud

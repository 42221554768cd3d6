#include "launch/agent/node_figures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace pscloud {
namespace {

JsonValue status_of(const std::string& text) {
  auto value = JsonValue::parse(text);
  EXPECT_TRUE(value) << value.error().message;
  return *std::move(value);
}

double node_figure(const Figures& figures, std::string_view name) {
  const auto found = std::ranges::find(figures, name, &Figures::value_type::first);
  return found == figures.end() ? std::nan("") : found->second;
}

TEST(NodeFigures, NodesOfOneTaskAreAddedUp) {
  const std::vector<JsonValue> nodes{status_of(R"({"samples":{"push_bytes":10,"staleness":3}})"),
                                     status_of(R"({"samples":{"push_bytes":5,"staleness":1,"keys":7}})")};
  const Figures figures = NodeFigures().take(nodes);
  EXPECT_EQ(node_figure(figures, "push_bytes"), 15);
  EXPECT_EQ(node_figure(figures, "staleness"), 3);
  EXPECT_EQ(node_figure(figures, "keys"), 7);
}

TEST(NodeFigures, QuantilesAreOfWhatCameSinceTheLastTime) {
  NodeFigures figures;
  const std::vector<JsonValue> first{status_of(R"({"latency_us":{"push":[[1024,1000]]}})")};
  EXPECT_NEAR(node_figure(figures.take(first), "push_ms_p50"), 1, 0.2);
  const std::vector<JsonValue> second{status_of(R"({"latency_us":{"push":[[1024,1000],[65536,10]]}})")};
  const Figures slower = figures.take(second);
  EXPECT_NEAR(node_figure(slower, "push_ms_p50"), 64, 10);
  EXPECT_NEAR(node_figure(slower, "push_ms_p99"), 64, 10);
  EXPECT_TRUE(std::isnan(node_figure(figures.take(second), "push_ms_p50"))) << "nothing was pushed meanwhile";
}

TEST(NodeFigures, WhatIsNoFigureIsLeftOut) {
  const std::vector<JsonValue> nodes{status_of(R"({"samples":{"a,b":1,"c":"x","d":1e999,"e":null},
      "latency_us":{"push":[[0,1],[5],["x",2],[1024,-5]],"pull":7}})"),
                                     status_of("[]"), status_of("{}")};
  EXPECT_EQ(NodeFigures().take(nodes), Figures{});
}

TEST(NodeFigures, SeveralNodesAreOneStatus) {
  const std::vector<std::string> texts{R"({"role":"server","waiting_for":["worker 1"],"hot_keys":[["7",3]]})",
                                       R"({"role":"server","waiting_for":[],"hot_keys":[["9",1]]})"};
  const std::vector<JsonValue> statuses{status_of(texts[0]), status_of(texts[1])};
  const JsonValue joined = status_of(joined_status(texts, statuses));
  EXPECT_EQ(joined["role"].text(), "server");
  EXPECT_EQ(joined["waiting_for"].items().size(), 1u);
  EXPECT_EQ(joined["hot_keys"].items().size(), 2u);
  EXPECT_EQ(joined["parts"].items()[1]["hot_keys"].items()[0].items()[0].text(), "9");
  EXPECT_EQ(joined_status(std::span(texts).first(1), std::span(statuses).first(1)), texts[0]);
}

}  // namespace
}  // namespace pscloud

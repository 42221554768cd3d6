#include "base/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <thread>

namespace pscloud {
namespace {

TEST(Metrics, TheTextIsWhatPrometheusReads) {
  Metrics metrics;
  metrics.counter("push_bytes_total", "Bytes pushed.", {{"table", "w"}, {"owner", "0"}}).add(12);
  metrics.counter("push_bytes_total", "Bytes pushed.", {{"table", "v"}, {"owner", "0"}}).add();
  metrics.gauge("queue_bytes", "Bytes that wait.").set(1.5);
  EXPECT_EQ(metrics.text(),
            "# HELP push_bytes_total Bytes pushed.\n"
            "# TYPE push_bytes_total counter\n"
            "push_bytes_total{table=\"v\",owner=\"0\"} 1\n"
            "push_bytes_total{table=\"w\",owner=\"0\"} 12\n"
            "# HELP queue_bytes Bytes that wait.\n"
            "# TYPE queue_bytes gauge\n"
            "queue_bytes 1.5\n");
}

TEST(Metrics, NothingMeasuredIsAnEmptyText) { EXPECT_EQ(Metrics().text(), ""); }

TEST(Metrics, LabelsAndHelpAreEscaped) {
  Metrics metrics;
  metrics.counter("a", "one\ntwo \\ \"three\"", {{"file", "C:\\x \"y\"\nz"}});
  EXPECT_EQ(metrics.text(),
            "# HELP a one\\ntwo \\\\ \"three\"\n"
            "# TYPE a counter\n"
            "a{file=\"C:\\\\x \\\"y\\\"\\nz\"} 0\n");
}

TEST(Metrics, NumbersThatAreNotFiniteHaveTheirNames) {
  Metrics metrics;
  Gauge& gauge = metrics.gauge("g", "h");
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [value, text] : {std::pair{infinity, "+Inf"}, {-infinity, "-Inf"}, {infinity - infinity, "NaN"}}) {
    gauge.set(value);
    EXPECT_THAT(metrics.text(), testing::EndsWith(std::string("\ng ") + text + "\n"));
  }
}

TEST(Metrics, LargeCountsKeepEveryDigit) {
  Metrics metrics;
  metrics.counter("c", "h").add(UINT64_MAX);
  EXPECT_THAT(metrics.text(), testing::HasSubstr("c 18446744073709551615\n"));
}

TEST(Metrics, TheSameNameAndLabelsGiveTheSameObject) {
  Metrics metrics;
  Counter& counter = metrics.counter("a", "h", {{"x", "1"}});
  for (int i = 0; i < 100; ++i) metrics.counter("a", "h", {{"x", std::to_string(i + 2)}});
  EXPECT_EQ(&counter, &metrics.counter("a", "h", {{"x", "1"}}));
  EXPECT_NE(&counter, &metrics.counter("a", "h"));
}

TEST(Metrics, ThreadsLoseNothing) {
  Metrics metrics;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) metrics.counter("a", "h").add();
      });
    }
  }
  EXPECT_EQ(metrics.counter("a", "h").value(), 4000);
}

TEST(MetricsDeathTest, AMistakeInANameIsABug) {
  Metrics metrics;
  EXPECT_DEATH(metrics.counter("push-bytes", "h"), "push-bytes");
  EXPECT_DEATH(metrics.counter("a", "h", {{"1x", ""}}), "1x");
  metrics.gauge("g", "h");
  EXPECT_DEATH(metrics.counter("g", "h"), "g is a gauge already");
}

}  // namespace
}  // namespace pscloud

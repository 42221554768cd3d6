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

TEST(Histogram, EachBucketBeginsWhereTheOneBeforeEnds) {
  EXPECT_EQ(Histogram::bucket_of(0), 0u);
  for (size_t i = 0; i + 1 < Histogram::kBuckets; ++i) {
    EXPECT_EQ(Histogram::bucket_of(Histogram::upper_us(i) - 1), i);
    EXPECT_EQ(Histogram::bucket_of(Histogram::upper_us(i)), i + 1);
  }
  EXPECT_EQ(Histogram::bucket_of(UINT64_MAX), Histogram::kBuckets - 1);
}

TEST(Histogram, QuantilesAreAtMostAFifthOff) {
  Histogram histogram;
  for (uint64_t us = 1; us <= 10000; ++us) histogram.add(us);
  for (const double q : {0.01, 0.1, 0.5, 0.9, 0.99}) {
    EXPECT_NEAR(*quantile(counts_of(histogram), q), q * 10000, q * 2000) << q;
  }
  EXPECT_EQ(histogram.sum_us(), 10000u * 10001 / 2);
}

TEST(Histogram, OneDurationIsItsOwnMedian) {
  Histogram histogram;
  histogram.add(1000);
  EXPECT_NEAR(*quantile(counts_of(histogram), 0.5), 1000, 200);
  EXPECT_EQ(quantile(counts_of(Histogram()), 0.5), std::nullopt);
}

TEST(Metrics, AHistogramIsTextInSeconds) {
  Metrics metrics;
  Histogram& histogram = metrics.histogram("push_seconds", "h", {{"table", "w"}});
  histogram.add(3);
  histogram.add(1000);
  const std::string text = metrics.text();
  EXPECT_THAT(text, testing::StartsWith("# HELP push_seconds h\n# TYPE push_seconds histogram\n"
                                        "push_seconds_bucket{table=\"w\",le=\"4e-06\"} 1\n"));
  EXPECT_THAT(text, testing::HasSubstr("push_seconds_bucket{table=\"w\",le=\"0.001024\"} 2\n"));
  EXPECT_THAT(text, testing::EndsWith("push_seconds_bucket{table=\"w\",le=\"+Inf\"} 2\n"
                                      "push_seconds_sum{table=\"w\"} 0.001003\npush_seconds_count{table=\"w\"} 2\n"));
}

TEST(Metrics, ATotalAddsUpWhatHasTheLabel) {
  Metrics metrics;
  metrics.counter("bytes", "h", {{"table", "w"}, {"direction", "push"}}).add(1);
  metrics.counter("bytes", "h", {{"table", "v"}, {"direction", "push"}}).add(2);
  metrics.counter("bytes", "h", {{"table", "w"}, {"direction", "pull"}}).add(4);
  EXPECT_EQ(metrics.total("bytes", "direction", "push"), 3);
  EXPECT_EQ(metrics.total("bytes"), 7);
  EXPECT_EQ(metrics.total("bytes", "direction", "up"), 0);
  EXPECT_EQ(metrics.total("no"), std::nullopt);
}

}  // namespace
}  // namespace pscloud

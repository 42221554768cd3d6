#include "cli/bench/quantiles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace pscloud {
namespace {

TEST(Quantiles, AreMeasurementsNotMeansOfThem) {
  std::vector<double> values(100);
  std::iota(values.rbegin(), values.rend(), 1);  // 100, 99, ... 1
  const Quantiles q(values);
  EXPECT_EQ(q.p50, 50);
  EXPECT_EQ(q.p95, 95);
  EXPECT_EQ(q.p99, 99);
  EXPECT_EQ(q.min, 1);
  EXPECT_EQ(quantile(values, 1), 100);
}

TEST(Quantiles, OfOneAreThatOne) {
  const Quantiles q({7});
  EXPECT_EQ(q.p50, 7);
  EXPECT_EQ(q.p99, 7);
  EXPECT_EQ(q.min, 7);
}

TEST(Quantiles, OfTwoHaveTheSmallerInTheMiddle) { EXPECT_EQ(quantile({9, 3}, 0.5), 3); }

TEST(Quantiles, OfNothingAreUnknown) {
  EXPECT_TRUE(std::isnan(Quantiles({}).p50));
  EXPECT_TRUE(std::isnan(Quantiles({}).min));
}

}  // namespace
}  // namespace pscloud

#include "learn/early_stop.h"

#include <gtest/gtest.h>

namespace pscloud {
namespace {

TEST(EarlyStop, EndsAfterSoManyPassesWithoutGain) {
  const EarlyStopSettings settings{.patience = 2, .min_decrease = 0.01};
  EarlyStop stop;
  EXPECT_FALSE(stop.is_enough(0.5, settings));
  EXPECT_FALSE(stop.is_enough(0.497, settings));  // too little
  EXPECT_FALSE(stop.is_enough(0.494, settings));  // a gain, since the best that was one
  EXPECT_FALSE(stop.is_enough(0.6, settings));
  EXPECT_TRUE(stop.is_enough(0.494, settings));
}

TEST(EarlyStop, NeverWithoutPatience) {
  EarlyStop stop;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(stop.is_enough(i, {}));
}

}  // namespace
}  // namespace pscloud

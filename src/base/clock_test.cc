#include "base/clock.h"

#include <gtest/gtest.h>

namespace pscloud {
namespace {

using std::chrono::milliseconds;

TEST(Clock, TimeAndDurationAddUp) {
  const Time start{1000};
  EXPECT_EQ(start + milliseconds(2), Time{3000});
  EXPECT_EQ(start - milliseconds(1), Time{0});
  EXPECT_EQ(Time{3000} - start, milliseconds(2));
  EXPECT_LT(start, Time::never());
}

TEST(Clock, TheSystemClockNeverGoesBack) {
  const SystemClock clock;
  Time before = clock.now();
  for (int i = 0; i < 1000; ++i) {
    const Time now = clock.now();
    ASSERT_GE(now, before);
    before = now;
  }
}

TEST(Clock, AManualClockMovesOnlyForwardAndWhenTold) {
  ManualClock clock;
  const Time start = clock.now();
  EXPECT_EQ(clock.now(), start);
  clock.advance(milliseconds(5));
  EXPECT_EQ(clock.now() - start, milliseconds(5));
  clock.advance_to(start);
  EXPECT_EQ(clock.now() - start, milliseconds(5));
  clock.advance_to(start + milliseconds(9));
  EXPECT_EQ(clock.now() - start, milliseconds(9));
}

}  // namespace
}  // namespace pscloud

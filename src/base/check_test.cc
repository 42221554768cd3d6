#include "base/check.h"

#include <gtest/gtest.h>

namespace pscloud {
namespace {

TEST(CheckDeathTest, ABrokenAssumptionEndsTheProcessAndSaysWhere) {
  EXPECT_DEATH(CHECK(1 > 2), "pscloud: bug at .*check_test.cc:[0-9]+: 1 > 2 does not hold\n");
  EXPECT_DEATH(CHECK(1 > 2, "seen {}", 7), "1 > 2 does not hold: seen 7");
}

TEST(Check, TheMessageIsNotBuiltWhenAllIsWell) {
  int built = 0;
  CHECK(true, "{}", ++built);
  EXPECT_EQ(built, 0);
}

}  // namespace
}  // namespace pscloud

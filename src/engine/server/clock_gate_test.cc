#include "engine/server/clock_gate.h"

#include <gtest/gtest.h>

namespace pscloud {
namespace {

TEST(ClockGate, TheMinimumIsThatOfTheSlowest) {
  ClockGate gate;
  gate.add(1);
  gate.add(2);
  gate.finish(1, 3);
  EXPECT_EQ(gate.minimum(), 0u);
  gate.finish(2, 2);
  EXPECT_EQ(gate.minimum(), 2u);
}

TEST(ClockGate, AClockDoesNotGoBack) {
  ClockGate gate;
  gate.add(1);
  gate.finish(1, 3);
  gate.finish(1, 2);
  EXPECT_EQ(gate.clock(1), 3u);
}

TEST(ClockGate, WhoIsAddedTwiceKeepsItsClock) {
  ClockGate gate;
  gate.add(1);
  gate.finish(1, 3);
  gate.add(1);
  EXPECT_EQ(gate.clock(1), 3u);
}

TEST(ClockGate, WhoComesLateStartsAtTheMinimum) {
  ClockGate gate;
  gate.add(1);
  gate.finish(1, 3);
  gate.add(2);
  EXPECT_EQ(gate.clock(2), 3u);
  EXPECT_EQ(gate.minimum(), 3u);
}

TEST(ClockGate, TheSlowestThatGoesLetsTheOthersOn) {
  ClockGate gate;
  gate.add(1);
  gate.add(2);
  gate.finish(1, 3);
  gate.remove(2);
  EXPECT_EQ(gate.minimum(), 3u);
  EXPECT_FALSE(gate.contains(2));
}

TEST(ClockGate, WithTheLastOneEveryClockIsFinished) {
  ClockGate gate;
  gate.add(1);
  gate.add(2);
  gate.finish(1, 3);
  gate.remove(1);
  gate.remove(2);
  EXPECT_EQ(gate.minimum(), 4u);  // clock 3 was begun
  gate.add(3);
  EXPECT_EQ(gate.clock(3), 4u);
}

TEST(ClockGate, WhoIsNotThereCanBeRemoved) {
  ClockGate gate;
  gate.add(1);
  gate.finish(1, 2);
  gate.remove(9);
  EXPECT_EQ(gate.minimum(), 2u);
}

TEST(ClockGate, EachConsistencyNeedsItsOwnMinimum) {
  EXPECT_EQ(ClockGate::needed(Consistency::async(), 7), 0u);
  EXPECT_EQ(ClockGate::needed(Consistency::bsp(), 7), 7u);
  EXPECT_EQ(ClockGate::needed(Consistency::ssp(0), 7), 7u);
  EXPECT_EQ(ClockGate::needed(Consistency::ssp(2), 7), 5u);
  EXPECT_EQ(ClockGate::needed(Consistency::ssp(9), 7), 0u);
  EXPECT_EQ(ClockGate::needed(Consistency::ssp(UINT32_MAX), 7), 0u);
}

TEST(ClockGate, NamesThoseWhoHoldItBack) {
  ClockGate gate;
  gate.add(1);
  gate.add(2);
  gate.add(3);
  gate.finish(2, 1);
  EXPECT_EQ(gate.holding_back(1, [](uint64_t session) { return std::to_string(session); }), "1, 3");
}

}  // namespace
}  // namespace pscloud

#include "engine/sim/oracle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pscloud {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Two workers, one table of one key; key 0 is index 0, workers are columns 0 and 1.
class OracleTest : public testing::Test {
 protected:
  static Oracle with(Consistency consistency) {
    TableSpec spec;
    spec.name = "w";
    spec.width = 2;
    spec.consistency = consistency;
    Oracle oracle({spec}, {7}, 2);
    oracle.begins(0, 0);
    oracle.begins(1, 0);
    return oracle;
  }
  static std::string read(Oracle& oracle, uint32_t column, float first, float second) {
    return oracle.judge(oracle.begin_read(0, column, {0}), {first, second});
  }
};

TEST_F(OracleTest, AcceptsWhatWasPushed) {
  Oracle oracle = with(Consistency::async());
  oracle.pushed(0, 0, 0);
  oracle.acknowledged(0, 0, 0);
  EXPECT_THAT(read(oracle, 1, 1, 0), IsEmpty());
}

TEST_F(OracleTest, ACountIsWholeAndNotNegative) {
  Oracle oracle = with(Consistency::async());
  oracle.pushed(0, 0, 0);
  EXPECT_THAT(read(oracle, 1, 0.5, 0), HasSubstr("no count"));
  EXPECT_THAT(read(oracle, 1, -1, 0), HasSubstr("no count"));
}

TEST_F(OracleTest, AReadMaySeeNoMoreThanWasPushed) {
  Oracle oracle = with(Consistency::async());
  oracle.pushed(0, 0, 0);
  EXPECT_THAT(read(oracle, 1, 2, 0), HasSubstr("counts twice"));
}

TEST_F(OracleTest, AReadMustSeeWhatWasAcknowledgedBefore) {
  Oracle oracle = with(Consistency::async());
  oracle.pushed(0, 0, 0);
  EXPECT_THAT(read(oracle, 1, 0, 0), IsEmpty());
  oracle.acknowledged(0, 0, 0);
  EXPECT_THAT(read(oracle, 1, 0, 0), HasSubstr("missing"));
}

TEST_F(OracleTest, AnAcknowledgementAfterTheReadWasAskedForDoesNotBindIt) {
  Oracle oracle = with(Consistency::async());
  oracle.pushed(0, 0, 0);
  const Oracle::Read asked = oracle.begin_read(0, 1, {0});
  oracle.acknowledged(0, 0, 0);
  EXPECT_THAT(oracle.judge(asked, {0, 0}), IsEmpty());
}

TEST_F(OracleTest, AReadMustSeeOnesOwnPushesThoughUnanswered) {
  Oracle oracle = with(Consistency::async());
  oracle.pushed(0, 0, 0);
  EXPECT_THAT(read(oracle, 0, 0, 0), HasSubstr("missing"));
}

TEST_F(OracleTest, ReadsDoNotGoBack) {
  Oracle oracle = with(Consistency::async());
  oracle.pushed(0, 0, 0);
  EXPECT_THAT(read(oracle, 1, 1, 0), IsEmpty());
  EXPECT_THAT(read(oracle, 1, 0, 0), HasSubstr("missing"));
}

TEST_F(OracleTest, ABspReadSeesNothingOfItsOwnClock) {
  Oracle oracle = with(Consistency::bsp());
  oracle.pushed(0, 0, 0);
  EXPECT_THAT(read(oracle, 0, 0, 0), IsEmpty());
  EXPECT_THAT(read(oracle, 0, 1, 0), HasSubstr("of its own clock"));
}

TEST_F(OracleTest, ABspReadSeesAllOfTheClocksBefore) {
  Oracle oracle = with(Consistency::bsp());
  oracle.pushed(0, 0, 0);
  oracle.ticked(0);
  oracle.ticked(1);
  EXPECT_THAT(read(oracle, 1, 0, 0), HasSubstr("missed a push of an earlier clock"));
  EXPECT_THAT(read(oracle, 1, 1, 0), IsEmpty());
}

TEST_F(OracleTest, ABspReadMayMissWhatALostWorkerWasNotToldOf) {
  Oracle oracle = with(Consistency::bsp());
  oracle.pushed(0, 0, 0);
  oracle.ticked(0);
  oracle.ticked(1);
  oracle.ends(0, Oracle::Life::kLost);
  EXPECT_THAT(read(oracle, 1, 0, 0), IsEmpty());
}

TEST_F(OracleTest, AnSspReadIsNotStalerThanItsBound) {
  Oracle oracle = with(Consistency::ssp(1));
  oracle.pushed(0, 0, 0);  // at clock 0
  oracle.ticked(0);
  oracle.ticked(0);
  oracle.ticked(1);
  EXPECT_THAT(read(oracle, 1, 0, 0), IsEmpty());  // at clock 1 it may miss clock 0
  oracle.ticked(1);
  EXPECT_THAT(read(oracle, 1, 0, 0), HasSubstr("staler than its bound"));
}

TEST_F(OracleTest, NobodysPushCountsWhileItIsTooFarAhead) {
  Oracle oracle = with(Consistency::ssp(1));
  oracle.ticked(0);
  oracle.ticked(0);
  oracle.pushed(0, 0, 0);  // at clock 2, the other is at 0
  EXPECT_THAT(read(oracle, 1, 1, 0), HasSubstr("ran too far ahead"));
}

TEST_F(OracleTest, WhoHasEndedHoldsNobodyBack) {
  Oracle oracle = with(Consistency::ssp(1));
  oracle.ticked(0);
  oracle.ticked(0);
  oracle.pushed(0, 0, 0);
  oracle.ends(1, Oracle::Life::kDone);
  EXPECT_THAT(read(oracle, 0, 1, 0), IsEmpty());
}

TEST_F(OracleTest, ARowNeverHoldsMoreThanWasPushed) {
  Oracle oracle = with(Consistency::async());
  oracle.pushed(0, 0, 1);
  EXPECT_THAT(oracle.judge_row(0, 0, {0, 1}, false), IsEmpty());
  EXPECT_THAT(oracle.judge_row(0, 0, {0, 2}, false), HasSubstr("counts twice"));
}

TEST_F(OracleTest, ARowHoldsAtTheEndWhatWasAcknowledged) {
  Oracle oracle = with(Consistency::async());
  oracle.pushed(0, 0, 1);
  EXPECT_THAT(oracle.judge_row(0, 0, {0, 0}, true), IsEmpty());
  oracle.acknowledged(0, 0, 1);
  EXPECT_THAT(oracle.judge_row(0, 0, {0, 0}, false), IsEmpty());
  EXPECT_THAT(oracle.judge_row(0, 0, {0, 0}, true), HasSubstr("lost"));
}

TEST_F(OracleTest, ARowHoldsAtTheEndEverythingOfAWorkerThatIsDone) {
  Oracle oracle = with(Consistency::async());
  oracle.pushed(0, 0, 1);
  oracle.ends(1, Oracle::Life::kDone);
  EXPECT_THAT(oracle.judge_row(0, 0, {0, 0}, true), HasSubstr("lost"));
}

}  // namespace
}  // namespace pscloud

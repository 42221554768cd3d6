#include "cli/local/line_channel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <optional>

namespace pscloud {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kUntilALine{10000};

class LineChannelTest : public testing::Test {
 protected:
  void SetUp() override {
    auto ends = LineChannel::make_pair();
    ASSERT_TRUE(ends);
    one_.emplace(std::move(ends->first));
    two_.emplace(std::move(ends->second));
  }
  std::optional<LineChannel> one_, two_;
};

TEST_F(LineChannelTest, LinesArriveInOrder) {
  ASSERT_TRUE(one_->write_line("run 10"));
  ASSERT_TRUE(one_->write_line(""));
  EXPECT_EQ(two_->read_line(kUntilALine).value(), "run 10");
  EXPECT_EQ(two_->read_line(kUntilALine).value(), "");
}

TEST_F(LineChannelTest, WhatWasWrittenBeforeTheEndIsStillRead) {
  ASSERT_TRUE(one_->write_line("done"));
  one_.reset();
  EXPECT_EQ(two_->read_line(kUntilALine).value(), "done");
  const auto end = two_->read_line(kUntilALine);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::kUnavailable);
}

TEST_F(LineChannelTest, WritingToNobodyIsAnErrorNotASignal) {
  one_.reset();
  EXPECT_EQ(two_->write_line("hello").error().code, Code::kUnavailable);
}

TEST_F(LineChannelTest, SilenceHasAnEnd) { EXPECT_EQ(two_->read_line(milliseconds(1)).error().code, Code::kTimeout); }

TEST_F(LineChannelTest, ACancelledWaitEnds) {
  EXPECT_EQ(two_->read_line(kUntilALine, [] { return true; }).error().code, Code::kFailed);
}

}  // namespace
}  // namespace pscloud

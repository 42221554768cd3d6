#include "cli/agreement.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string_view>

#include "base/fd.h"

namespace pscloud {
namespace {

class Agreement : public testing::Test {
 protected:
  Agreement() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe(ends), 0);
    read_end_ = Fd(ends[0]);
    write_end_ = Fd(ends[1]);
  }
  void answer(std::string_view text) {
    EXPECT_EQ(::write(write_end_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  Fd read_end_;
  Fd write_end_;
};

TEST_F(Agreement, IsALineThatBeginsWithY) {
  for (const auto& [text, agreed] : {std::pair("y\n", true), {"Yes\n", true}, {"n\n", false}, {"\n", false}}) {
    answer(text);
    EXPECT_EQ(agrees("? ", read_end_.get(), [] { return false; }), agreed) << text;
  }
  write_end_ = Fd();  // nobody is there any more
  EXPECT_FALSE(agrees("? ", read_end_.get(), [] { return false; }));
}

TEST_F(Agreement, AnInterruptionIsNotWaitedBehind) {
  int looks = 0;
  EXPECT_FALSE(agrees("? ", read_end_.get(), [&] { return ++looks > 2; }));
}

TEST_F(Agreement, AnAnswerAfterAnInterruptionCountsForNothing) {
  answer("y\n");
  EXPECT_FALSE(agrees("? ", read_end_.get(), [] { return true; }));
}

}  // namespace
}  // namespace pscloud

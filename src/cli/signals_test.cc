#include "cli/signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <future>

namespace pscloud {
namespace {

TEST(Signals, ASignalIsACallOnAThread) {
  Signals signals;
  std::promise<int> got;
  signals.watch([&](int signal) { got.set_value(signal); });
  ::kill(::getpid(), SIGINT);
  EXPECT_EQ(got.get_future().get(), SIGINT);
  EXPECT_EQ(signals.received(), SIGINT);
}

TEST(Signals, OneThatCameEarlyIsNotLost) {
  Signals signals;
  ::kill(::getpid(), SIGTERM);
  std::promise<int> got;
  signals.watch([&](int signal) { got.set_value(signal); });
  EXPECT_EQ(got.get_future().get(), SIGTERM);
}

TEST(Signals, WithoutASignalNothingHappens) {
  Signals signals;
  signals.watch([](int) { FAIL(); });
  EXPECT_EQ(signals.received(), 0);
}

TEST(SignalsDeathTest, ASecondOneEndsTheProcess) {
  EXPECT_EXIT(
      {
        Signals signals;
        signals.watch([](int) { ::kill(::getpid(), SIGINT); });
        ::kill(::getpid(), SIGINT);
        ::pause();
      },
      testing::ExitedWithCode(130), "`pscloud cluster ls` tell of what may be left");
}

}  // namespace
}  // namespace pscloud

#include "net/reactor.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace pscloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class ReactorTest : public testing::Test {
 protected:
  ReactorTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    here_ = Fd(ends[0]);
    there_ = Fd(ends[1]);
  }
  // Turns until `done` or until it has had time enough.
  bool turn_until(const std::function<bool()>& done) {
    const auto end = steady_clock::now() + std::chrono::seconds(30);
    while (!done() && steady_clock::now() < end) {
      if (!reactor_->turn() && !reactor_->has_work()) reactor_->wait(milliseconds(100));
    }
    return done();
  }

  const std::unique_ptr<Reactor> reactor_ = Reactor::make().value();
  Fd here_;
  Fd there_;
};

TEST_F(ReactorTest, TellsOnceForEachChange) {
  int readable = 0;
  int writable = 0;
  ASSERT_TRUE(reactor_->watch(here_.get(), [&](Reactor::Change change) {
    readable += change.readable;
    writable += change.writable;
  }));
  reactor_->turn();
  EXPECT_EQ(readable, 0);
  EXPECT_EQ(writable, 1);
  ASSERT_EQ(write(there_.get(), "x", 1), 1);
  EXPECT_TRUE(reactor_->turn());
  EXPECT_EQ(readable, 1);
  EXPECT_FALSE(reactor_->turn()) << "it was told, though it has not read";
}

TEST_F(ReactorTest, OneThatIsGoneIsNotCalledThoughItWasReady) {
  int calls = 0;
  uint64_t first = 0;
  uint64_t second = 0;
  const auto drop_both = [&](Reactor::Change) {
    ++calls;
    reactor_->unwatch(here_.get(), first);
    reactor_->unwatch(there_.get(), second);
  };
  first = reactor_->watch(here_.get(), drop_both).value();
  second = reactor_->watch(there_.get(), drop_both).value();
  reactor_->turn();
  reactor_->turn();
  EXPECT_EQ(calls, 1);
}

TEST_F(ReactorTest, AnEndedPeerIsReadableSoThatReadingTells) {
  bool readable = false;
  ASSERT_TRUE(reactor_->watch(here_.get(), [&](Reactor::Change change) { readable |= change.readable; }));
  there_ = {};
  EXPECT_TRUE(turn_until([&] { return readable; }));
}

TEST_F(ReactorTest, TimersFireInTheirOrderAndNotWhenCleared) {
  std::vector<int> fired;
  const auto now = steady_clock::now();
  reactor_->set_timer(now + milliseconds(30), [&] { fired.push_back(3); });
  const auto cleared = reactor_->set_timer(now + milliseconds(20), [&] { fired.push_back(2); });
  reactor_->set_timer(now + milliseconds(10), [&] { fired.push_back(1); });
  reactor_->clear_timer(cleared);
  EXPECT_TRUE(turn_until([&] { return fired.size() == 2; }));
  EXPECT_EQ(fired, (std::vector{1, 3}));
  EXPECT_GE(steady_clock::now(), now + milliseconds(30));
  reactor_->clear_timer(cleared);  // again: no harm
}

TEST_F(ReactorTest, AnEarlierTimerEndsAWaitThatBeganBefore) {
  std::atomic<bool> woke{false};
  reactor_->set_timer(steady_clock::now() + std::chrono::seconds(60), [] {});
  std::jthread waiter([&] {
    reactor_->wait(std::chrono::seconds(50));
    woke = true;
  });
  std::this_thread::sleep_for(milliseconds(20));  // so that it most likely waits by now; either order must work
  reactor_->set_timer(steady_clock::now(), [] {});
  waiter.join();
  EXPECT_TRUE(woke);
}

TEST_F(ReactorTest, WorkForLaterIsDoneInTheSameTurnAndItsOwnInTheNext) {
  std::vector<int> done;
  reactor_->later([&] {
    done.push_back(1);
    reactor_->later([&] { done.push_back(2); });
  });
  reactor_->turn();
  EXPECT_EQ(done, (std::vector{1}));
  EXPECT_TRUE(reactor_->has_work());
  reactor_->turn();
  EXPECT_EQ(done, (std::vector{1, 2}));
}

TEST_F(ReactorTest, PostedWorkOfManyThreadsIsAllDone) {
  int sum = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) reactor_->post([&] { ++sum; });
      });
    }
    EXPECT_TRUE(turn_until([&] { return sum == 4000; }));
  }
  EXPECT_EQ(sum, 4000);
}

}  // namespace
}  // namespace pscloud

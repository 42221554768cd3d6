#include "engine/server/push_staleness.h"

#include <gtest/gtest.h>

namespace pscloud {
namespace {

constexpr TableId kStaleTable = 7;
constexpr uint64_t kPuller = 1;
constexpr uint64_t kOther = 2;

class PushStalenessTest : public testing::Test {
 protected:
  void push(uint64_t session) { staleness_.on_push(kStaleTable, session, now_); }
  // By a push that is not stale.
  void let_it_tell() {
    now_ = now_ + std::chrono::seconds(3);
    staleness_.on_pull(kStaleTable, kPuller);
    push(kPuller);
  }
  std::optional<double> mean() const { return metrics_.total("pscloud_staleness"); }
  std::optional<double> largest() const { return metrics_.total("pscloud_staleness_max"); }

  Metrics metrics_;
  PushStaleness staleness_{metrics_};
  Time now_ = Time{} + std::chrono::seconds(100);
};

TEST_F(PushStalenessTest, CountsThePushesOfOthersSinceThePull) {
  push(kOther);  // nobody has pulled: nothing is stale
  EXPECT_EQ(mean(), std::nullopt);
  staleness_.on_pull(kStaleTable, kPuller);
  staleness_.on_pull(kStaleTable, kOther);
  push(kPuller);  // 0
  push(kPuller);  // its own do not count: 0
  push(kOther);   // 2
  push(kOther);   // still 2
  push(kPuller);  // 2
  let_it_tell();  // 0
  EXPECT_EQ(largest(), 2);
  EXPECT_EQ(mean(), 6.0 / 6);
}

TEST_F(PushStalenessTest, TellsOfAShortTimeAndOfEachTableForItself) {
  staleness_.on_pull(kStaleTable, kPuller);
  for (int i = 0; i < 9; ++i) push(kOther);
  push(kPuller);
  let_it_tell();
  EXPECT_EQ(largest(), 9);
  staleness_.on_pull(kStaleTable, kOther);
  staleness_.on_push(kStaleTable + 1, kPuller, now_);
  push(kOther);
  let_it_tell();
  EXPECT_EQ(largest(), 0);
  EXPECT_EQ(mean(), 0);
}

TEST_F(PushStalenessTest, WhoHasLeftIsForgotten) {
  staleness_.on_pull(kStaleTable, kOther);
  staleness_.on_pull(kStaleTable, kPuller);
  for (int i = 0; i < 9; ++i) push(kPuller);
  staleness_.forget(kOther);
  push(kOther);
  let_it_tell();
  EXPECT_EQ(largest(), 0);
}

}  // namespace
}  // namespace pscloud

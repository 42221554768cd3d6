#include "learn/read_meter.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "engine/testing_cluster.h"

namespace pscloud {
namespace {

constexpr std::chrono::seconds kASecond{1};

// Two workers of a job, each with a meter; one thread does what both do.
class ReadMeterTest : public testing::Test {
 protected:
  ReadMeterTest() : cluster_({.workers = 2}) {
    // Each waits for the other.
    std::jthread other([this] { other_ = cluster_.worker(1); });
    one_ = cluster_.worker(0);
  }
  void TearDown() override {
    EXPECT_TRUE(one_->leave());
    EXPECT_TRUE(other_->leave());
  }

  ReadMeter meter(Worker& worker, std::vector<ReadProgress>& shown) {
    return {worker, "how far", 1000, [&shown](const ReadProgress& progress) { shown.push_back(progress); }, clock_};
  }

  const TestingCluster cluster_;
  std::unique_ptr<Worker> one_;
  std::unique_ptr<Worker> other_;
  ManualClock clock_;
  std::vector<ReadProgress> by_one_;
  std::vector<ReadProgress> by_other_;
};

TEST_F(ReadMeterTest, OneTellsWhatAllHaveRead) {
  ReadMeter one = meter(*one_, by_one_);
  ReadMeter other = meter(*other_, by_other_);
  for (int i = 1; i <= 5; ++i) {
    ASSERT_TRUE(one.note(10, 100 * i));
    ASSERT_TRUE(one.note(5, 100 * i));  // too early to be told
    ASSERT_TRUE(other.note(1, 10 * i));
    clock_.advance(kASecond);
  }
  EXPECT_EQ(by_other_.size(), 0u);
  ASSERT_EQ(by_one_.size(), 5u);
  EXPECT_EQ(by_one_[0].examples, 10u);
  EXPECT_EQ(by_one_[0].bytes, 100u);
  EXPECT_EQ(by_one_[4].seconds, 4);
  EXPECT_EQ(by_one_[4].examples, 10u + 4 * 15 + 4);
  EXPECT_EQ(by_one_[4].bytes, 540u);
  EXPECT_EQ(by_one_[4].bytes_all, 1000u);
}

TEST_F(ReadMeterTest, AnotherTellsWhenTheFirstWaits) {
  ReadMeter one = meter(*one_, by_one_);
  ReadMeter other = meter(*other_, by_other_);
  ASSERT_TRUE(one.note(10, 100));
  for (int i = 1; i <= 5; ++i) {
    ASSERT_TRUE(other.note(1, 10 * i));
    clock_.advance(kASecond);
  }
  EXPECT_EQ(by_one_.size(), 1u);
  ASSERT_EQ(by_other_.size(), 4u);  // but for the time that it needs to see that
  EXPECT_EQ(by_other_.back().examples, 15u);
}

TEST_F(ReadMeterTest, OfThoseWhoSeeItAtTheSameTimeOneTells) {
  std::vector<std::vector<ReadProgress>> shown(20);
  std::vector<std::jthread> threads;
  for (auto& by_one : shown) {
    threads.emplace_back([&] { EXPECT_TRUE(meter(*one_, by_one).note(1, 1)); });
  }
  threads.clear();
  size_t told = 0;
  for (const auto& by_one : shown) told += by_one.size();
  EXPECT_EQ(told, 1u);
}

TEST_F(ReadMeterTest, NobodyAsksForWhatNobodyWantsToSee) {
  ReadMeter silent(*one_, "how far", 1000, {}, clock_);
  ASSERT_TRUE(silent.note(1, 1));
  EXPECT_EQ(one_->tally("how far", {}, 0, 1).value().front(), 0);
}

}  // namespace
}  // namespace pscloud

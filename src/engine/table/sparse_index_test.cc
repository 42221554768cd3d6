#include "engine/table/sparse_index.h"

#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/random.h"

namespace pscloud {
namespace {

// An index with its rows, whose keys are chosen by what they mix to.
class SparseIndexTest : public testing::Test {
 protected:
  void add(const std::vector<uint64_t>& mixed) {
    rows_.reserve(rows_.size() + mixed.size());
    index_.grow_by(mixed.size(), rows_);
    for (const uint64_t one : mixed) {
      ASSERT_EQ(index_.find(one, rows_), SparseIndex::kNone);
      index_.insert(one, rows_.append(unmix_key(one)));
    }
  }
  // Every row is found under its key, by find() and by the two steps of a guess.
  void check_all() {
    uint32_t wrong_guesses = 0;
    for (uint32_t row = 0; row < rows_.size(); ++row) {
      const uint64_t mixed = mix_key(rows_.key(row));
      ASSERT_EQ(index_.find(mixed, rows_), row);
      const SparseIndex::Line* home = index_.home(mixed);
      uint32_t guess = SparseIndex::guess(home, mixed);
      if (guess == SparseIndex::kFurther) guess = SparseIndex::guess_further(home, mixed);
      ASSERT_TRUE(guess != SparseIndex::kNone || index_.is_crowded());
      wrong_guesses += guess != row;
    }
    wrong_guesses_ = wrong_guesses;
  }

  SparseIndex index_;
  SparseRows rows_{1};
  uint32_t wrong_guesses_ = 0;
};

TEST_F(SparseIndexTest, FindsEveryKeyAtEverySize) {
  Random random(1);
  while (rows_.size() < 30000) {
    // At first every size, later every few: so all steps from eight lines to sixteen are met at several levels.
    std::vector<uint64_t> mixed(rows_.size() < 3000 ? 1 + rows_.size() / 40 : 997);
    for (uint64_t& one : mixed) one = random.next();
    add(mixed);
    check_all();
    if (HasFatalFailure()) return;
  }
  EXPECT_LT(wrong_guesses_, rows_.size() / 100);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(index_.find(random.next(), rows_), SparseIndex::kNone);
}

TEST_F(SparseIndexTest, KeysThatAllBelongToOneLineAreFound) {
  // More than find a place in eight lines.
  for (uint64_t i = 0; i < 100; ++i) add({0x0034000000001234 + (i << 40)});
  check_all();
  EXPECT_TRUE(index_.is_crowded());
  // They stay together while it grows around them, and go home when there is room.
  Random random(2);
  for (int i = 0; i < 50; ++i) {
    std::vector<uint64_t> mixed(200);
    for (uint64_t& one : mixed) one = random.next();
    add(mixed);
  }
  check_all();
}

TEST_F(SparseIndexTest, TakesAboutSevenAndAHalfBytesForAKey) {
  Random random(3);
  for (int i = 0; i < 139; ++i) {
    std::vector<uint64_t> mixed(10000);
    for (uint64_t& one : mixed) one = random.next();
    const uint64_t promised = index_.bytes_with(mixed.size());
    add(mixed);
    EXPECT_LE(index_.bytes(), promised);
    // A small one may have 2.5 times of it, for what will come, and whole pages.
    EXPECT_LT(index_.bytes(), rows_.size() * 19 + HugeMemory::kHugePage);
  }
  const double each = static_cast<double>(index_.bytes()) / static_cast<double>(rows_.size());
  EXPECT_GT(each, 7.5);
  EXPECT_LT(each, 7.8);
  check_all();
}

TEST(IndexLine, KeepsElevenRows) {
  IndexLine line;
  for (uint32_t i = 0; i < IndexLine::kRows; ++i) {
    EXPECT_EQ(line.used(), i);
    line.add(IndexLine::slot(100 + i, i % 2 == 1), SparseIndex::kRowsMax - 1 - i);
  }
  line.set_reach(5);
  EXPECT_EQ(line.reach(), 7u);
  EXPECT_EQ(line.used(), IndexLine::kRows);
  for (uint32_t i = 0; i < IndexLine::kRows; ++i) {
    EXPECT_EQ(line.tag(i), 100 + i);
    EXPECT_EQ(line.displaced(i), i % 2 == 1);
    EXPECT_EQ(line.row(i), SparseIndex::kRowsMax - 1 - i);
    EXPECT_EQ(line.matches(IndexLine::slot(100 + i, i % 2 == 1)), 1u << i);
    EXPECT_EQ(line.matches(IndexLine::slot(100 + i, i % 2 == 0)), 0u);
  }
  line.remove(3);
  EXPECT_EQ(line.used(), 10u);
  EXPECT_EQ(line.tag(3), 110u);
  EXPECT_EQ(line.row(3), SparseIndex::kRowsMax - 1 - 10);
  EXPECT_EQ(line.matches(IndexLine::slot(103, true)), 0u);
  EXPECT_EQ(line.reach(), 7u);
  line.set_reach(0);
  EXPECT_EQ(line.reach(), 0u);
  line.add(IndexLine::slot(7, false), 0);
  EXPECT_EQ(line.row(10), 0u);
  EXPECT_EQ(line.row(9), SparseIndex::kRowsMax - 1 - 9);
}

}  // namespace
}  // namespace pscloud

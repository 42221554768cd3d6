#include "engine/server/owned_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<OwnedTable> make(Consistency consistency, uint64_t bytes_max = uint64_t{1} << 30,
                                 const std::string& updater = "add") {
  TableSpec spec;
  spec.name = "w";
  spec.consistency = consistency;
  spec.updater.name = updater;
  auto table = OwnedTable::make(spec, {}, 0, 1, bytes_max);
  EXPECT_TRUE(table) << table.error().message;
  return *std::move(table);
}

Operation push(uint32_t clock, uint32_t rank, uint64_t seq, std::vector<Key> keys, std::vector<float> values) {
  Operation operation;
  operation.type = FrameType::kPush;
  operation.session = 100 + rank;
  operation.rank = rank;
  operation.seq = seq;
  operation.clock = clock;
  operation.count = static_cast<uint32_t>(keys.size());
  operation.keys = std::move(keys);
  operation.values = Floats(values);
  operation.bytes = 100;
  return operation;
}

void apply(OwnedTable& table, Operation operation) {
  const Result<> done = table.push(operation);
  ASSERT_TRUE(done) << done.error().message;
}

float value(const OwnedTable& table, Key key) {
  Operation operation;
  operation.keys = {key};
  std::array<float, 1> out{};
  EXPECT_TRUE(table.pull(operation, out));
  return out[0];
}

TEST(OwnedTable, AnAsyncPushTakesEffectAtOnce) {
  const auto table = make(Consistency::async());
  apply(*table, push(0, 0, 1, {7}, {2}));
  EXPECT_EQ(value(*table, 7), 2);
  EXPECT_EQ(table->next_settlement(), UINT32_MAX);
}

TEST(OwnedTable, APushPullAnswersWithWhatThePushMadeExceptOfBsp) {
  for (const Consistency& consistency : {Consistency::async(), Consistency::bsp()}) {
    const auto table = make(consistency);
    std::array<float, 2> out{};
    for (uint64_t seq = 1; seq <= 2; ++seq) {
      Operation both = push(0, 0, seq, {7, 9}, {2, 3});
      both.keys.keep_memo();
      ASSERT_TRUE(table->push_pull(both, out));
    }
    const bool later = consistency.kind == Consistency::Kind::kBsp;
    EXPECT_THAT(out, ElementsAre(later ? 0 : 4, later ? 0 : 6));
    table->settle(1);
    EXPECT_EQ(value(*table, 9), 6);
  }
}

TEST(OwnedTable, ABspPushTakesEffectWhenItsClockIsFinished) {
  const auto table = make(Consistency::bsp());
  apply(*table, push(3, 0, 1, {7}, {2}));
  EXPECT_EQ(table->next_settlement(), 4u);
  table->settle(3);
  EXPECT_EQ(value(*table, 7), 0);
  table->settle(4);
  EXPECT_EQ(value(*table, 7), 2);
  EXPECT_EQ(table->next_settlement(), UINT32_MAX);
}

TEST(OwnedTable, ABspPushCountsOnce) {
  const auto table = make(Consistency::bsp());
  apply(*table, push(0, 0, 1, {7}, {2}));
  table->settle(1);
  table->settle(2);
  EXPECT_EQ(value(*table, 7), 2);
}

// With `assign` the last push to take effect is the one that is seen.
TEST(OwnedTable, BspPushesTakeEffectByClockRankAndNumberHoweverTheyArrive) {
  // The last of clock 1: rank 2, number 9.
  std::vector<Operation> pushes = {push(0, 5, 99, {7}, {1}), push(1, 0, 50, {7}, {2}), push(1, 2, 8, {7}, {3}),
                                   push(1, 2, 9, {7}, {4})};
  std::vector<size_t> order = {0, 1, 2, 3};
  do {
    const auto table = make(Consistency::bsp(), 1 << 30, "assign");
    for (const size_t i : order) apply(*table, pushes[i]);
    table->settle(2);
    EXPECT_EQ(value(*table, 7), 4);
  } while (std::ranges::next_permutation(order).found);
}

TEST(OwnedTable, BspSumsHaveTheSameBitsHoweverTheyArrive) {
  // These sums differ in float arithmetic: (1e8 + 1) - 1e8 is 0, (1e8 - 1e8) + 1 is 1.
  std::vector<Operation> pushes = {push(0, 0, 1, {7}, {1e8f}), push(0, 1, 1, {7}, {1}), push(0, 2, 1, {7}, {-1e8f})};
  std::vector<size_t> order = {0, 1, 2};
  do {
    const auto table = make(Consistency::bsp());
    for (const size_t i : order) apply(*table, pushes[i]);
    table->settle(1);
    EXPECT_EQ(value(*table, 7), (1e8f + 1) - 1e8f);
  } while (std::ranges::next_permutation(order).found);
}

// With `assign` the sum of the last clock is seen, and nothing of the clocks before.
TEST(OwnedTable, PushesOfAClockAreOneSum) {
  std::vector<Operation> pushes = {push(0, 1, 2, {7}, {64}), push(1, 0, 1, {3, 7}, {1, 2}),
                                   push(1, 1, 3, {7, 9}, {4, 8}), push(1, 2, 1, {1}, {16}), push(2, 0, 2, {7}, {1024})};
  std::vector<size_t> order = {0, 1, 2, 3, 4};
  do {
    const auto table = make(Consistency::sum(), 1 << 30, "assign");
    for (const size_t i : order) apply(*table, pushes[i]);
    table->settle(2);
    EXPECT_EQ(value(*table, 1), 16);
    EXPECT_EQ(value(*table, 3), 1);
    EXPECT_EQ(value(*table, 7), 6);
    EXPECT_EQ(value(*table, 9), 8);
  } while (std::ranges::next_permutation(order).found);
}

TEST(OwnedTable, ASumThatIsTooLargeIsTheLargestThereIs) {
  const auto table = make(Consistency::sum());
  apply(*table, push(0, 0, 1, {7}, {3e38f}));
  apply(*table, push(0, 1, 1, {7}, {3e38f}));
  table->settle(1);
  EXPECT_EQ(value(*table, 7), std::numeric_limits<float>::max());
}

TEST(OwnedTable, ABspPushThatCannotBeAppliedIsRefusedAtOnce) {
  const auto table = make(Consistency::bsp());
  Operation bad = push(0, 0, 1, {7}, {NAN});
  const Result<> refused = table->push(bad);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  table->settle(1);
  EXPECT_EQ(value(*table, 7), 0);
}

TEST(OwnedTable, PushesThatWaitForTheClockKeepWithinTheBudget) {
  const uint64_t empty = make(Consistency::bsp())->bytes();
  const auto table = make(Consistency::bsp(), empty + (4 << 20));
  uint64_t seq = 0;
  Result<> result;
  while (result && seq < 1'000'000) {
    Operation operation = push(0, 0, ++seq, {7}, {1});
    operation.bytes = 64 << 10;
    result = table->push(operation);
    EXPECT_LE(table->bytes(), empty + (4 << 20));
  }
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kInvalid);
  EXPECT_THAT(result.error().message, HasSubstr("call clock() more often"));
  // What was taken in before counts, and makes room when it has.
  table->settle(1);
  EXPECT_EQ(value(*table, 7), static_cast<float>(seq - 1));
  apply(*table, push(1, 0, seq, {7}, {1}));
}

TEST(OwnedTable, ADenseTableHoldsItsOwnersRows) {
  TableSpec spec;
  spec.name = "d";
  spec.kind = TableKind::kDense;
  spec.rows = 10;
  auto table = OwnedTable::make(spec, {}, 1, 2, 1 << 20);
  ASSERT_TRUE(table) << table.error().message;
  Operation operation;
  operation.type = FrameType::kPush;
  operation.range = true;
  operation.first = 5;
  operation.count = 5;
  operation.values = {1, 2, 3, 4, 5};
  EXPECT_TRUE((*table)->push(operation));
  std::vector<float> out(5);
  EXPECT_TRUE((*table)->pull(operation, out));
  EXPECT_THAT(out, ElementsAre(1, 2, 3, 4, 5));
  operation.first = 4;  // the other owner's
  EXPECT_FALSE((*table)->push(operation));
}

TEST(OwnedTable, ATableBeyondTheBudgetIsNotMade) {
  TableSpec spec;
  spec.name = "d";
  spec.kind = TableKind::kDense;
  spec.rows = uint64_t{1} << 40;
  const auto table = OwnedTable::make(spec, {}, 0, 1, 1 << 20);
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, Code::kInvalid);
  EXPECT_THAT(table.error().message, HasSubstr("memory_max"));
}

}  // namespace
}  // namespace pscloud

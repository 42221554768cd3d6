#include "learn/batch_state.h"

#include <gtest/gtest.h>

#include "io/memory_store.h"
#include "learn/checkpoint.pb.h"

namespace pscloud {
namespace {

// Remembers what it is given.
class FakeDescent final : public Descent {
 public:
  FakeDescent(std::vector<Key> keys, size_t rows) : keys_(std::move(keys)), columns_(keys_.size()), rows_(rows) {}

  size_t examples() const override { return rows_.size(); }
  double loss() const override { return 0; }
  std::span<const Key> keys() const override { return keys_; }
  double weight(size_t column) const override { return columns_[column].weight; }
  bool is_active(size_t column) const override { return columns_[column].active; }
  void set_weights(std::span<const float>) override {}
  ColumnState column_state(size_t column) const override { return columns_[column]; }
  RowState row_state(size_t row) const override { return rows_[row]; }
  void set_column_state(size_t column, const ColumnState& state) override { columns_[column] = state; }
  void set_row_state(size_t row, const RowState& state) override { rows_[row] = state; }

 private:
  std::vector<Key> keys_;
  std::vector<ColumnState> columns_;
  std::vector<RowState> rows_;
};

TEST(BatchState, EachWorkerFindsItsOwnInTheFilesOfOthers) {
  MemoryStore store({}, 1 << 20);
  // Two workers, whose columns are not in the order of their keys.
  FakeDescent first({30, 10}, 3);
  FakeDescent second({20}, 1);
  first.set_column_state(0, {3.5, 0.1, 2.5, false});
  first.set_column_state(1, {1.5, 0.2, 0.5, true});
  second.set_column_state(0, {2.25, 0.3, 1, true});
  for (size_t row = 0; row < 3; ++row) first.set_row_state(row, {row + 0.5, row + 0.25, 0.125f});
  second.set_row_state(0, {7, 8, 9});
  const std::vector<BatchExamples::Part> parts_of_first{{"a", 2}, {"b", 1}};
  const std::vector<BatchExamples::Part> parts_of_second{{"c", 1}};
  const uint64_t check = write_batch_state(store, "w0", first, std::vector<uint32_t>{1, 0}, parts_of_first).value();
  ASSERT_TRUE(write_batch_state(store, "w1", second, std::vector<uint32_t>{0}, parts_of_second));
  EXPECT_EQ(verify_batch_state(store, "w0").value(), check);
  EXPECT_NE(verify_batch_state(store, "w1").value(), check);

  // Another one has two of the three parts, in another order, and a column that nobody had.
  FakeDescent other({10, 20, 25, 30}, 3);
  const std::vector<uint32_t> all{0, 1, 2, 3};
  const std::vector<BatchExamples::Part> parts{{"c", 1}, {"a", 2}};
  std::vector<uint8_t> found;
  ASSERT_TRUE(read_batch_state(store, "w0", all, parts, other, found));
  EXPECT_EQ(found, (std::vector<uint8_t>{0, 1}));
  ASSERT_TRUE(read_batch_state(store, "w1", all, parts, other, found));
  EXPECT_EQ(found, (std::vector<uint8_t>{1, 1}));
  EXPECT_EQ(other.weight(0), 1.5);
  EXPECT_EQ(other.weight(1), 2.25);
  EXPECT_EQ(other.weight(2), 0);
  EXPECT_EQ(other.column_state(3).earlier, 2.5);
  EXPECT_EQ(other.column_state(3).delta, 0.1);
  EXPECT_FALSE(other.is_active(3));
  EXPECT_EQ(other.row_state(0).score, 7);
  EXPECT_EQ(other.row_state(1).score, 0.5);
  EXPECT_EQ(other.row_state(2).earlier, 1.25);
  EXPECT_EQ(other.row_state(2).slope, 0.125f);

  // A part that is wanted twice is found twice, wherever it was.
  FakeDescent twice({10}, 4);
  const std::vector<BatchExamples::Part> same{{"a", 2}, {"a", 2}};
  found.clear();
  ASSERT_TRUE(read_batch_state(store, "w0", std::vector<uint32_t>{0}, same, twice, found));
  EXPECT_EQ(found, (std::vector<uint8_t>{1, 1}));
  EXPECT_EQ(twice.row_state(3).score, 1.5);

  const std::vector<BatchExamples::Part> shorter{{"a", 1}};
  EXPECT_EQ(read_batch_state(store, "w0", all, shorter, other, found).error().message, "a: had 2 examples, and has 1");
}

TEST(BatchState, DamageIsNoticed) {
  MemoryStore store({}, 1 << 20);
  FakeDescent descent({1, 2}, 2);
  const std::vector<uint32_t> columns{0, 1};
  const std::vector<BatchExamples::Part> parts{{"a", 2}};
  ASSERT_TRUE(write_batch_state(store, "w0", descent, columns, parts));
  const std::string good = store.get("w0");
  std::vector<uint8_t> found;
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 4);
    store.put("w0", bad);
    EXPECT_EQ(verify_batch_state(store, "w0").error().code, Code::kCorrupt) << i;
    EXPECT_EQ(read_batch_state(store, "w0", columns, parts, descent, found).error().code, Code::kCorrupt) << i;
  }
}

TEST(BatchState, APositionIsKeptToTheBit) {
  PS::LM::BatchPosition kept;
  const BatchPosition position{.iteration = 7,
                               .objective = 1.0 / 3,
                               .momentum = 2.0 / 7,
                               .threshold = 1e-17,
                               .all_active = false,
                               .delay_max = 2,
                               .early = {0.25, 3}};
  put_position(position, kept);
  const BatchPosition found = get_position(kept);
  EXPECT_EQ(found.iteration, 7u);
  EXPECT_EQ(found.objective, position.objective);
  EXPECT_EQ(found.momentum, position.momentum);
  EXPECT_EQ(found.threshold, position.threshold);
  EXPECT_FALSE(found.all_active);
  EXPECT_EQ(found.delay_max, 2u);
  EXPECT_EQ(found.early, position.early);
}

}  // namespace
}  // namespace pscloud

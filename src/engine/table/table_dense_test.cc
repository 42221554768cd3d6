#include "engine/table/table_dense.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>

#include "engine/table/table_check.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

TableSpec dense_spec(uint64_t rows, uint32_t width, const std::string& updater = "add") {
  TableSpec spec;
  spec.name = "d";
  spec.kind = TableKind::kDense;
  spec.rows = rows;
  spec.width = width;
  spec.updater.name = updater;
  return spec;
}

std::unique_ptr<TableStore> make_dense(const TableSpec& spec, uint64_t first_row, uint64_t row_count) {
  auto table = TableStore::make(spec, UpdaterCatalog(), first_row, row_count, 1 << 30);
  EXPECT_TRUE(table.has_value()) << table.error().message;
  return *std::move(table);
}

std::vector<float> pull_all(const TableStore& table, uint64_t first_row) {
  std::vector<float> values(table.rows() * table.spec().width);
  EXPECT_TRUE(table.pull_range(first_row, values).has_value());
  return values;
}

TEST(DenseTable, PushesByKeyAndByRangeMeetInTheSameRows) {
  const auto table = make_dense(dense_spec(100, 2), 40, 10);
  EXPECT_EQ(table->rows(), 10u);
  ASSERT_TRUE(table->push_range(41, std::vector<float>{1, 2, 3, 4}).has_value());
  ASSERT_TRUE(table->push(std::vector<Key>{40, 42, 43, 49}, std::vector<float>{1, 1, 1, 1, 1, 1, 5, 6}).has_value());
  std::vector<float> out(8);
  ASSERT_TRUE(table->pull(std::vector<Key>{40, 41, 42, 49}, out).has_value());
  EXPECT_EQ(out, (std::vector<float>{1, 1, 1, 2, 4, 5, 5, 6}));
  ASSERT_TRUE(table->pull_range(42, std::span(out).first(4)).has_value());
  EXPECT_EQ(std::vector<float>(out.begin(), out.begin() + 4), (std::vector<float>{4, 5, 1, 1}));
}

TEST(DenseTable, RowsElsewhereAreRefusedWithWhatIsHere) {
  const auto table = make_dense(dense_spec(100, 1), 40, 10);
  std::vector<float> one(1), two(2), many(11);
  for (const Key key : {Key{39}, Key{50}, UINT64_MAX}) {
    const auto pushed = table->push(std::vector<Key>{key}, one);
    ASSERT_FALSE(pushed.has_value());
    EXPECT_EQ(pushed.error().code, Code::kInvalid);
    EXPECT_THAT(pushed.error().message,
                HasSubstr(fmt::format("row {} is not here: this owner holds rows 40 to 50", key)));
    EXPECT_FALSE(table->pull(std::vector<Key>{key}, one).has_value());
    EXPECT_FALSE(table->push_range(key, one).has_value());
    EXPECT_FALSE(table->pull_range(key, one).has_value());
    EXPECT_FALSE(table->prepare_push_range(key, one).has_value());
  }
  EXPECT_FALSE(table->push_range(49, two).has_value());
  EXPECT_FALSE(table->pull_range(40, many).has_value());
  EXPECT_FALSE(table->push(std::vector<Key>{49, 50}, two).has_value());
  EXPECT_TRUE(table->push_range(49, one).has_value());
}

TEST(DenseTable, BadPushesChangeNothing) {
  const auto table = make_dense(dense_spec(8, 2, "ftrl"), 0, 8);
  ASSERT_TRUE(table->push_range(0, std::vector<float>(16, 1.0f)).has_value());
  const auto before = pull_all(*table, 0);
  const auto refused = [&](const Result<>& result, const char* why) {
    ASSERT_FALSE(result.has_value()) << why;
    EXPECT_EQ(result.error().code, Code::kInvalid);
    EXPECT_THAT(result.error().message, HasSubstr("table d: "));
    EXPECT_THAT(result.error().message, HasSubstr(why));
    EXPECT_EQ(pull_all(*table, 0), before);
  };
  const std::vector<Key> keys{1, 2}, falling{2, 1};
  const std::vector<float> good(4, 1.0f), bad{1, 1, 1, NAN}, few(3);
  refused(table->push(keys, bad), "row 2 has nan in column 1");
  refused(table->push_range(5, bad), "row 6 has nan in column 1");
  refused(table->push(falling, good), "position 1 has key 1 after 2");
  refused(table->push(keys, few), "2 rows of width 2 need 4 floats, not 3");
  refused(table->push_range(0, few), "3 floats are not whole rows of width 2");
  refused(table->prepare_push(keys, bad), "row 2");
  EXPECT_TRUE(table->prepare_push(keys, good).has_value());
  EXPECT_TRUE(table->prepare_push_range(0, good).has_value());
  EXPECT_EQ(pull_all(*table, 0), before);
}

TEST(DenseTable, StartsWithInitialValuesThatDoNotDependOnTheCut) {
  TableSpec spec = dense_spec(20, 3);
  spec.initial = {-1, 1, 5};
  const auto whole = pull_all(*make_dense(spec, 0, 20), 0);
  const auto part = pull_all(*make_dense(spec, 7, 6), 7);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 7 * 3));
  std::vector<float> row(3);
  fill_initial(spec.initial, 7, row);
  EXPECT_TRUE(std::equal(row.begin(), row.end(), part.begin()));
}

TEST(DenseTable, OwnerMayHoldNoRows) {
  const auto table = make_dense(dense_spec(3, 1), 2, 0);
  EXPECT_EQ(table->rows(), 0u);
  EXPECT_TRUE(table->push({}, {}).has_value());
  EXPECT_TRUE(table->pull_range(2, {}).has_value());
  EXPECT_FALSE(table->push(std::vector<Key>{2}, std::vector<float>{1}).has_value());
}

TEST(DenseTable, ThatDoesNotFitIsRefused) {
  const auto table = TableStore::make(dense_spec(1000, 1, "ftrl"), UpdaterCatalog(), 0, 1000, 11999);
  ASSERT_FALSE(table.has_value());
  EXPECT_EQ(table.error().code, Code::kInvalid);
  EXPECT_THAT(table.error().message, HasSubstr("1000 rows of 12 bytes are more than its limit of 11999"));
  TableSpec spec = dense_spec(1000, 1);
  spec.bytes_max = 100;
  EXPECT_FALSE(TableStore::make(spec, UpdaterCatalog(), 0, 1000, 1 << 20).has_value());
  // More bytes than 64 bits can count.
  EXPECT_FALSE(
      TableStore::make(dense_spec(uint64_t{1} << 61, 1, "adam"), UpdaterCatalog(), 0, uint64_t{1} << 61, UINT64_MAX - 1)
          .has_value());
  EXPECT_LT((*TableStore::make(dense_spec(1000, 1, "ftrl"), UpdaterCatalog(), 0, 1000, 1 << 20))->bytes(),
            12000u + 1000);
}

TEST(TableStore, WithAnUnknownUpdaterIsRefused) {
  const auto table = TableStore::make(dense_spec(1, 1, "ftrll"), UpdaterCatalog(), 0, 1, 1 << 20);
  ASSERT_FALSE(table.has_value());
  EXPECT_EQ(table.error().code, Code::kInvalid);
  EXPECT_THAT(table.error().message, HasSubstr("table d: there is no updater called ftrll; this server knows"));
}

TEST(DenseTable, PushAndPullInOneAreTheSameBitsAsOneAfterTheOther) {
  for (const char* updater : {"add", "adam", "ftrl"}) {
    const TableSpec spec = dense_spec(5000, 3, updater);
    const auto two = make_dense(spec, 0, 5000);
    const auto one = make_dense(spec, 0, 5000);
    std::vector<float> values(2000 * 3), expected(values.size()), out(values.size());
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) - 8;
    std::vector<Key> keys;
    for (Key key = 0; keys.size() < 2000; ++key) {
      if (key % 100 != 7) keys.push_back(key + 1);
    }
    for (int round = 0; round < 3; ++round) {
      ASSERT_TRUE(two->push_range(round, values).has_value());
      ASSERT_TRUE(two->pull_range(round, expected).has_value());
      ASSERT_TRUE(one->push_pull_range(round, values, out).has_value());
      EXPECT_EQ(out, expected);
      ASSERT_TRUE(two->push(keys, values).has_value());
      ASSERT_TRUE(two->pull(keys, expected).has_value());
      RowMemo memo;
      ASSERT_TRUE(one->push_pull(keys, values, out, &memo).has_value());
      EXPECT_TRUE(memo.checked);
      EXPECT_EQ(out, expected);
    }
    EXPECT_EQ(pull_all(*one, 0), pull_all(*two, 0));
    EXPECT_FALSE(one->push_pull_range(0, values, std::span(out).first(3)).has_value());
    EXPECT_FALSE(one->push_pull(keys, values, std::span(out).first(3)).has_value());
    EXPECT_EQ(pull_all(*one, 0), pull_all(*two, 0));
  }
}

RC_GTEST_PROP(DenseTable, BehavesAsAMapOfRows, ()) {
  const auto first = *rc::gen::inRange<uint64_t>(0, 10);
  const auto count = *rc::gen::inRange<uint64_t>(1, 30);
  const auto width = *rc::gen::inRange<uint32_t>(1, 4);
  const auto updater = *rc::gen::element<std::string>("add", "assign", "adagrad", "adam", "ftrl");
  const auto table = make_dense(dense_spec(50, width, updater), first, count);
  const auto rule = *UpdaterCatalog().make({updater, {}});
  struct Row {
    std::vector<float> value, state;
  };
  std::vector<Row> model(count, {std::vector<float>(width), std::vector<float>(rule->state_width(width))});
  const auto steps = *rc::gen::inRange(1, 10);
  for (int step = 0; step < steps; ++step) {
    std::vector<Key> keys;
    std::vector<float> values;
    for (uint64_t row = 0; row < count; ++row) {
      if (*rc::gen::inRange(0, 3) == 0) continue;
      keys.push_back(first + row);
      for (uint32_t column = 0; column < width; ++column)
        values.push_back(static_cast<float>(*rc::gen::inRange(-100, 100)) / 8);
      rule->update(model[row].value, model[row].state, std::span(values).last(width));
    }
    RC_ASSERT(table->push(keys, values).has_value());
    const auto all = pull_all(*table, first);
    for (uint64_t row = 0; row < count; ++row)
      RC_ASSERT(std::equal(model[row].value.begin(), model[row].value.end(), all.begin() + row * width));
  }
}

TEST(DenseTable, RowsThatAreSetAreThoseThatWereScanned) {
  const TableSpec spec{.name = "d", .kind = TableKind::kDense, .rows = 8, .updater = {"adagrad", {}}};
  const UpdaterCatalog catalog;
  const auto table = TableStore::make(spec, catalog, 4, 4, 1 << 24).value();
  ASSERT_TRUE(table->push(std::vector<Key>{4, 6}, std::vector<float>{1, 2}));
  const ScannedRows rows = table->scan(0, 10, ScanKind::kState);
  const auto copy = TableStore::make(spec, catalog, 4, 4, 1 << 24).value();
  ASSERT_TRUE(copy->set(rows.keys, rows.floats, ScanKind::kState));
  EXPECT_EQ(copy->scan(0, 10, ScanKind::kState), rows);
  EXPECT_FALSE(copy->set(std::vector<Key>{5, 3}, std::vector<float>{9, 9}, ScanKind::kAll));
  EXPECT_EQ(copy->scan(0, 10, ScanKind::kState), rows);
}

}  // namespace
}  // namespace pscloud

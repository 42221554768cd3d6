#include "engine/table/table_sparse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include "base/hash.h"
#include "base/random.h"
#include "engine/table/table_check.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

TableSpec sparse_spec(uint32_t width, const std::string& updater = "add") {
  TableSpec spec;
  spec.name = "s";
  spec.width = width;
  spec.updater.name = updater;
  return spec;
}

std::unique_ptr<TableStore> make_sparse(const TableSpec& spec, uint64_t bytes_max = uint64_t{1} << 32) {
  auto table = TableStore::make(spec, UpdaterCatalog(), 0, 0, bytes_max);
  EXPECT_TRUE(table.has_value()) << table.error().message;
  return *std::move(table);
}

std::vector<float> pull(const TableStore& table, const std::vector<Key>& keys) {
  std::vector<float> values(keys.size() * table.spec().width);
  const auto result = table.pull(keys, values);
  EXPECT_TRUE(result.has_value()) << result.error().message;
  return values;
}

TEST(SparseTable, EveryNumberIsAKey) {
  const auto table = make_sparse(sparse_spec(1));
  const std::vector<Key> keys{0, 1, uint64_t{1} << 63, UINT64_MAX - 1, UINT64_MAX};
  ASSERT_TRUE(table->push(keys, std::vector<float>{1, 2, 3, 4, 5}).has_value());
  EXPECT_EQ(table->rows(), 5u);
  EXPECT_EQ(pull(*table, keys), (std::vector<float>{1, 2, 3, 4, 5}));
  EXPECT_EQ(pull(*table, {2, uint64_t{1} << 62}), (std::vector<float>{0, 0}));
  EXPECT_EQ(table->rows(), 5u);  // a pull makes nothing
}

TEST(SparseTable, KeysOfOneLineAndTagDoNotShareARow) {
  // However many groups there are, all belong to one line, and have one tag: far more than find a place near it.
  std::set<Key> sorted;
  for (uint64_t i = 0; i < 300; ++i) sorted.insert(unmix_key(0x0012000000000abc + (i << 40)));
  const std::vector<Key> keys(sorted.begin(), sorted.end());
  std::vector<float> values(keys.size());
  std::iota(values.begin(), values.end(), 1.0f);
  const auto table = make_sparse(sparse_spec(1));
  ASSERT_TRUE(table->push(keys, values).has_value());
  EXPECT_EQ(pull(*table, keys), values);
  EXPECT_EQ(table->rows(), keys.size());
}

TEST(SparseTable, KeepsAllRowsWhileItGrows) {
  const auto table = make_sparse(sparse_spec(2, "assign"));
  Random random(7);
  std::map<Key, float> model;
  for (int push = 0; push < 60; ++push) {
    std::map<Key, float> batch;
    for (int i = 0; i < 5000; ++i) batch[random.below(400000)] = static_cast<float>(random.below(1000));
    std::vector<Key> keys;
    std::vector<float> values;
    for (const auto& [key, value] : batch) {
      keys.push_back(key);
      values.push_back(value);
      values.push_back(value + 0.5f);
      model[key] = value;
    }
    ASSERT_TRUE(table->push(keys, values).has_value());
    ASSERT_EQ(table->rows(), model.size());
  }
  std::vector<Key> keys;
  std::vector<float> expected;
  for (const auto& [key, value] : model) {
    keys.push_back(key);
    expected.push_back(value);
    expected.push_back(value + 0.5f);
  }
  EXPECT_EQ(pull(*table, keys), expected);
}

TEST(SparseTable, AbsentKeysShowTheirInitialValuesAndStartFromThem) {
  TableSpec spec = sparse_spec(3);
  spec.initial = {-1, 1, 9};
  const auto table = make_sparse(spec);
  const std::vector<Key> keys{3, 4};
  std::vector<float> initial(6);
  fill_initial(spec.initial, 3, std::span(initial).first(3));
  fill_initial(spec.initial, 4, std::span(initial).last(3));
  EXPECT_EQ(pull(*table, keys), initial);
  ASSERT_TRUE(table->push(std::vector<Key>{4}, std::vector<float>{1, 1, 1}).has_value());
  for (size_t i = 3; i < 6; ++i) initial[i] += 1;
  EXPECT_EQ(pull(*table, keys), initial);
  EXPECT_EQ(table->rows(), 1u);
}

TEST(SparseTable, BadPushesChangeNothing) {
  const auto table = make_sparse(sparse_spec(2));
  ASSERT_TRUE(table->push(std::vector<Key>{5}, std::vector<float>{1, 2}).has_value());
  const auto refused = [&](const Result<>& result, const char* why) {
    ASSERT_FALSE(result.has_value()) << why;
    EXPECT_EQ(result.error().code, Code::kInvalid);
    EXPECT_THAT(result.error().message, HasSubstr("table s: "));
    EXPECT_THAT(result.error().message, HasSubstr(why));
    EXPECT_EQ(table->rows(), 1u);
    EXPECT_EQ(pull(*table, {5}), (std::vector<float>{1, 2}));
  };
  const std::vector<Key> keys{5, 6}, falling{6, 5}, same{5, 5};
  const std::vector<float> good(4, 1.0f), bad{1, 1, -INFINITY, 1};
  refused(table->push(keys, bad), "key 6 has -inf in column 0");
  refused(table->prepare_push(keys, bad), "key 6 has -inf in column 0");
  refused(table->push(falling, good), "position 1 has key 5 after 6");
  refused(table->push(same, good), "position 1 has key 5 after 5");
  refused(table->push(keys, std::vector<float>(3)), "2 rows of width 2 need 4 floats, not 3");
  std::vector<float> out(4);
  refused(table->push_pull(keys, bad, out), "key 6 has -inf in column 0");
  refused(table->push_pull(keys, good, std::span(out).first(2)), "need 4 floats");
  refused(table->push_pull_range(0, good, out), "no ranges");
  refused(table->push_range(0, good), "no ranges");
  refused(table->prepare_push_range(0, good), "no ranges");
  refused(table->pull_range(0, out), "no ranges");
  refused(table->pull(falling, out), "strictly increase");
  refused(table->pull(keys, std::span(out).first(2)), "need 4 floats");
  // Prepared rows are there and unchanged.
  EXPECT_TRUE(table->prepare_push(keys, good).has_value());
  EXPECT_EQ(table->rows(), 2u);
  EXPECT_EQ(pull(*table, keys), (std::vector<float>{1, 2, 0, 0}));
}

TEST(SparseTable, PushBeyondTheBudgetChangesNothingAndSaysWhatToDo) {
  TableSpec spec = sparse_spec(1);
  spec.bytes_max = 200000;
  const auto table = make_sparse(spec);
  Key next = 0;
  Result<> result;
  while (result) {
    const uint64_t rows = table->rows(), bytes = table->bytes();
    const std::vector<Key> keys{next, next + 1, next + 2};
    const std::vector<float> values(3, 1.0f);
    const auto prepared = table->prepare_push(keys, values);
    result = table->push(keys, values);
    EXPECT_EQ(prepared.has_value(), result.has_value());
    EXPECT_LE(table->bytes(), 200000u);
    if (!result) {
      EXPECT_EQ(table->rows(), rows);
      EXPECT_EQ(table->bytes(), bytes);
    }
    next += 3;
  }
  EXPECT_GT(table->rows(), 200000u / 40);
  EXPECT_EQ(result.error().code, Code::kInvalid);
  for (const char* part :
       {"table s: ", "limit on this server owner is 200000", "raise bytes_max", "more servers", "fewer keys"})
    EXPECT_THAT(result.error().message, HasSubstr(part));
  // Rows that are there may still be pushed to.
  EXPECT_TRUE(table->push(std::vector<Key>{0}, std::vector<float>{1}).has_value());
  EXPECT_EQ(pull(*table, {0}), std::vector<float>{2});
}

TEST(SparseTable, BytesForAKeyStayWithinHalfMoreThanItsContentAndEightMegabytes) {
  const auto table = make_sparse(sparse_spec(1, "ftrl"));
  constexpr uint64_t kContent = 8 + 4 + 8;  // key, value, state
  std::vector<Key> keys(20000);
  std::iota(keys.begin(), keys.end(), 0);
  const std::vector<float> values(keys.size(), 1.0f);
  for (int push = 0; push < 25; ++push) {
    ASSERT_TRUE(table->push(keys, values).has_value());
    for (Key& key : keys) key += keys.size();
    if (table->rows() < 100000) continue;
    // Rows and index each take whole huge pages, and so small an index may be 2.5 times as large as it must.
    EXPECT_LT(table->bytes(), table->rows() * kContent * 3 / 2 + 4 * HugeMemory::kHugePage) << table->rows();
  }
}

TEST(SparseTable, MillionsOfKeysTakeAtMostTwoFifthsMoreThanTheirContent) {
  const auto table = make_sparse(sparse_spec(1, "ftrl"));
  constexpr uint64_t kContent = 8 + 4 + 8;
  std::vector<Key> keys(50000);
  std::iota(keys.begin(), keys.end(), 0);
  const std::vector<float> values(keys.size(), 1.0f);
  while (table->rows() < 3'000'000) {
    ASSERT_TRUE(table->prepare_push(keys, values).has_value());
    for (Key& key : keys) key += keys.size();
    if (table->rows() < 1'000'000) continue;
    ASSERT_LT(table->bytes(), table->rows() * kContent * 14 / 10 + 2 * HugeMemory::kHugePage) << table->rows();
  }
}

TEST(SparseTable, BudgetIsKeptAtEveryGrowth) {
  // Just enough for what it has: each push must be refused or stay within.
  const auto table = make_sparse(sparse_spec(1));
  std::vector<Key> keys(3000);
  std::iota(keys.begin(), keys.end(), 0);
  const std::vector<float> values(keys.size(), 1.0f);
  uint64_t budget = table->bytes();
  int refused = 0;
  while (table->rows() < 400000) {
    table->limit_bytes(budget);
    const uint64_t rows = table->rows(), bytes = table->bytes();
    if (table->push(keys, values)) {
      for (Key& key : keys) key += keys.size();
    } else {
      ASSERT_EQ(table->rows(), rows);
      ASSERT_EQ(table->bytes(), bytes);
      budget += 5000;
      ++refused;
    }
    ASSERT_LE(table->bytes(), budget);
  }
  EXPECT_GT(refused, 100);
}

TEST(SparseTable, SmallTableIsSmall) {
  const auto table = make_sparse(sparse_spec(1));
  EXPECT_LT(table->bytes(), 10000u);
  ASSERT_TRUE(table->push(std::vector<Key>{1, 2, 3}, std::vector<float>(3)).has_value());
  EXPECT_LT(table->bytes(), 10000u);
}

TEST(SparseTable, RowsMayBeWide) {
  const auto table = make_sparse(sparse_spec(65536, "adam"));
  std::vector<float> values(2 * 65536, 1.0f);
  ASSERT_TRUE(table->push(std::vector<Key>{7, 9}, values).has_value());
  ASSERT_TRUE(table->push(std::vector<Key>{8, 9}, values).has_value());
  const auto out = pull(*table, {8, 9});
  EXPECT_NEAR(out[0], -0.001, 1e-6);
  EXPECT_NEAR(out[2 * 65536 - 1], -0.002, 1e-6);
}

// Keys that collide often, the ends of the range, and some from everywhere.
Key any_key() {
  const auto small = rc::gen::inRange<Key>(0, 40);
  const auto large = rc::gen::map(rc::gen::inRange<Key>(0, 5), [](Key key) { return UINT64_MAX - key; });
  const auto crowded =
      rc::gen::map(rc::gen::inRange<Key>(0, 40), [](Key key) { return unmix_key(0x0012000000000abc + (key << 44)); });
  return *rc::gen::oneOf(small, large, crowded, rc::gen::arbitrary<Key>());
}

std::vector<Key> any_keys(size_t most) {
  std::set<Key> sorted;
  const auto count = *rc::gen::inRange<size_t>(0, most);
  for (size_t i = 0; i < count; ++i) sorted.insert(any_key());
  return {sorted.begin(), sorted.end()};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

RC_GTEST_PROP(SparseTable, WithAMemoOrFusedEveryBitIsTheSame, ()) {
  TableSpec spec = sparse_spec(*rc::gen::element<uint32_t>(1, 2, 8, 9, 16, 32),
                               *rc::gen::element<std::string>("add", "assign", "sgd", "adagrad", "adam", "ftrl"));
  spec.initial = *rc::gen::element(InitialValues{}, InitialValues{-1, 1, 3});
  const auto plain = make_sparse(spec);
  const auto quick = make_sparse(spec);
  // With little room the one pass that cannot fail is not taken.
  const bool narrow = *rc::gen::arbitrary<bool>();
  if (narrow) quick->limit_bytes(uint64_t{1} << 17);
  std::vector<std::pair<std::vector<Key>, RowMemo>> lists(3);
  for (auto& [keys, memo] : lists) keys = any_keys(100);
  const auto steps = *rc::gen::inRange(1, 20);
  for (int step = 0; step < steps; ++step) {
    auto& [keys, memo] = lists[*rc::gen::inRange<size_t>(0, lists.size())];
    RowMemo* used = *rc::gen::arbitrary<bool>() ? &memo : nullptr;
    std::vector<float> values(keys.size() * spec.width), out(values.size()), expected(values.size());
    for (float& value : values) value = static_cast<float>(*rc::gen::inRange(-100, 100)) / 8;
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        RC_ASSERT(plain->push(keys, values).has_value());
        RC_ASSERT(quick->push(keys, values, used).has_value());
        break;
      case 1:
        RC_ASSERT(plain->push(keys, values).has_value());
        RC_ASSERT(plain->pull(keys, expected).has_value());
        RC_ASSERT(quick->push_pull(keys, values, out, used).has_value());
        RC_ASSERT(same_bits(out, expected));
        break;
      case 2:
        RC_ASSERT(plain->prepare_push(keys, values).has_value());
        RC_ASSERT(quick->prepare_push(keys, values, used).has_value());
        break;
      default:
        RC_ASSERT(plain->pull(keys, expected).has_value());
        RC_ASSERT(quick->pull(keys, out, used).has_value());
        RC_ASSERT(same_bits(out, expected));
    }
    RC_ASSERT(plain->rows() == quick->rows());
  }
  for (const auto& [keys, memo] : lists) RC_ASSERT(same_bits(pull(*plain, keys), pull(*quick, keys)));
}

TEST(SparseTable, MemoOfAPullFindsRowsThatCameLater) {
  const auto table = make_sparse(sparse_spec(1));
  const std::vector<Key> keys{0, 5, UINT64_MAX};
  RowMemo memo;
  std::vector<float> out(3);
  ASSERT_TRUE(table->pull(keys, out, &memo).has_value());
  EXPECT_FALSE(memo.complete);
  ASSERT_TRUE(table->push(std::vector<Key>{5}, std::vector<float>{2}).has_value());
  ASSERT_TRUE(table->pull(keys, out, &memo).has_value());
  EXPECT_EQ(out, (std::vector<float>{0, 2, 0}));
  ASSERT_TRUE(table->push_pull(keys, std::vector<float>{1, 1, 1}, out, &memo).has_value());
  EXPECT_EQ(out, (std::vector<float>{1, 3, 1}));
  EXPECT_TRUE(memo.complete);
  EXPECT_EQ(table->rows(), 3u);
}

TEST(SparseTable, RefusedListLeavesItsMemoEmpty) {
  TableSpec spec = sparse_spec(1);
  spec.bytes_max = 4000;
  const auto table = make_sparse(spec);
  std::vector<Key> many(1000), falling{2, 1};
  std::iota(many.begin(), many.end(), 0);
  std::vector<float> out(1000);
  RowMemo memo, other;
  for (int round = 0; round < 2; ++round) {  // again: it must not be believed the second time
    EXPECT_FALSE(table->push(falling, std::vector<float>{1, 1}, &other).has_value());
    EXPECT_FALSE(table->pull(falling, std::span(out).first(2), &other).has_value());
    EXPECT_FALSE(table->push_pull(many, std::vector<float>(1000), out, &memo).has_value());
  }
  EXPECT_EQ(table->rows(), 0u);
  ASSERT_TRUE(table->pull(many, out, &memo).has_value());
}

TEST(SparseTable, RowsThatFillCacheLinesBeginOnOne) {
  for (const size_t floats : {16, 48, 192}) {
    SparseRows rows(floats);
    rows.reserve(100);
    for (Key key = 0; key < 100; ++key) rows.append(key * 7);
    for (uint32_t row = 0; row < 100; ++row) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(rows.floats(row)) % 64, 0u);
      EXPECT_EQ(rows.key(row), row * 7);
    }
  }
}

RC_GTEST_PROP(SparseTable, BehavesAsAMapOfRows, ()) {
  TableSpec spec = sparse_spec(*rc::gen::element<uint32_t>(1, 2, 5, 9),
                               *rc::gen::element<std::string>("add", "assign", "sgd", "adagrad", "adam", "ftrl"));
  spec.initial = *rc::gen::element(InitialValues{}, InitialValues{0.5f, 0.5f, 0}, InitialValues{-1, 1, 3});
  const auto table = make_sparse(spec);
  const auto rule = *UpdaterCatalog().make(spec.updater);
  struct Row {
    std::vector<float> value, state;
  };
  std::map<Key, Row> model;
  const auto steps = *rc::gen::inRange(1, 12);
  for (int step = 0; step < steps; ++step) {
    const std::vector<Key> keys = any_keys(60);
    if (*rc::gen::arbitrary<bool>()) {
      std::vector<float> values;
      for (const Key key : keys) {
        for (uint32_t column = 0; column < spec.width; ++column)
          values.push_back(static_cast<float>(*rc::gen::inRange(-100, 100)) / 8);
        auto& row = model[key];
        if (row.value.empty()) {
          row = {std::vector<float>(spec.width), std::vector<float>(rule->state_width(spec.width))};
          fill_initial(spec.initial, key, row.value);
        }
        rule->update(row.value, row.state, std::span(values).last(spec.width));
      }
      RC_ASSERT(table->prepare_push(keys, values).has_value());
      RC_ASSERT(table->push(keys, values).has_value());
    } else {
      std::vector<float> expected;
      for (const Key key : keys) {
        std::vector<float> row(spec.width);
        fill_initial(spec.initial, key, row);
        if (model.contains(key)) row = model[key].value;
        expected.insert(expected.end(), row.begin(), row.end());
      }
      RC_ASSERT(pull(*table, keys) == expected);
    }
    RC_ASSERT(table->rows() == model.size());
  }
}

TEST(SparseTable, RowsThatAreSetAreThoseThatWereScanned) {
  const TableSpec spec{.name = "w", .width = 2, .updater = {"adagrad", {}}};
  const UpdaterCatalog catalog;
  const auto table = TableStore::make(spec, catalog, 0, 0, 1 << 24).value();
  ASSERT_TRUE(table->push(std::vector<Key>{8, 9}, std::vector<float>{1, 2, 3, 4}));
  ASSERT_TRUE(table->push(std::vector<Key>{1, 9}, std::vector<float>{5, 6, 7, 8}));
  const ScannedRows rows = table->scan(0, 10, ScanKind::kState);
  ASSERT_EQ(rows.keys, (std::vector<Key>{8, 9, 1}));

  const auto copy = TableStore::make(spec, catalog, 0, 0, 1 << 24).value();
  ASSERT_TRUE(copy->set(rows.keys, rows.floats, ScanKind::kState));
  EXPECT_EQ(copy->scan(0, 10, ScanKind::kState), rows);  // their order too
  ASSERT_TRUE(copy->push(std::vector<Key>{1}, std::vector<float>{1, 1}));
  ASSERT_TRUE(copy->set(rows.keys, rows.floats, ScanKind::kState));
  EXPECT_EQ(copy->scan(0, 10, ScanKind::kState), rows);

  // Values alone: the updater's state of them.
  ASSERT_TRUE(copy->set(std::vector<Key>{9}, std::vector<float>{3, 4}, ScanKind::kAll));
  const ScannedRows one = copy->scan(1, 1, ScanKind::kState);
  EXPECT_EQ(one.floats, (std::vector<float>{3, 4, 0, 0}));
}

TEST(SparseTable, RowsThatDoNotFitAreNotSet) {
  const UpdaterCatalog catalog;
  const auto table = TableStore::make({.name = "w"}, catalog, 0, 0, 1 << 16).value();
  std::vector<Key> keys(100000);
  std::iota(keys.begin(), keys.end(), 0);
  const auto set = table->set(keys, std::vector<float>(keys.size()), ScanKind::kAll);
  ASSERT_FALSE(set);
  EXPECT_NE(set.error().message.find("nothing was changed"), std::string::npos) << set.error().message;
  EXPECT_EQ(table->rows(), 0u);
}

}  // namespace
}  // namespace pscloud

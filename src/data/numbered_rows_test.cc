#include "data/numbered_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

// Two rows of a block whose first row is left out.
NumberedRows two_rows(bool values, bool groups) {
  RowBlock block;
  block.labels = {0, 1, -1};
  block.ends = {1, 3, 6};
  block.keys = {5, 9, 7, 7, 9, 8};
  if (values) block.values = {0, 0.5f, 1, 2, 3, 4};
  if (groups) block.groups = {0, 1, 2, 3, 4, 65535};
  NumberedRows rows;
  rows.assign(slice_of(block, 1, 2), std::vector<Key>{7, 8, 9}, std::vector<uint32_t>{2, 0, 0, 2, 1});
  return rows;
}

TEST(NumberedRows, AreAsTheyWereGiven) {
  for (const bool values : {false, true}) {
    for (const bool groups : {false, true}) {
      const NumberedRows given = two_rows(values, groups);
      NumberedRows read;
      read.memory().assign(given.bytes().begin(), given.bytes().end());
      ASSERT_TRUE(read.decode(given.bytes().size()));
      for (const NumberedRows* rows : {&given, &std::as_const(read)}) {
        EXPECT_EQ(rows->size(), 2u);
        EXPECT_THAT(rows->rows().labels, ElementsAre(1, -1));
        EXPECT_THAT(rows->rows().ends, ElementsAre(2, 5));
        EXPECT_EQ(rows->rows().first, 0u);
        EXPECT_THAT(rows->keys(), ElementsAre(7, 8, 9));
        EXPECT_THAT(rows->columns(), ElementsAre(2, 0, 0, 2, 1));
        const std::vector<float> all_values{0.5f, 1, 2, 3, 4};
        const std::vector<uint16_t> all_groups{1, 2, 3, 4, 65535};
        EXPECT_THAT(rows->rows().values, ElementsAreArray(values ? all_values : std::vector<float>()));
        EXPECT_THAT(rows->rows().groups, ElementsAreArray(groups ? all_groups : std::vector<uint16_t>()));
      }
    }
  }
}

TEST(NumberedRows, MemoryIsUsedAgain) {
  NumberedRows rows = two_rows(true, true);
  rows.assign({}, {}, {});
  EXPECT_EQ(rows.size(), 0u);
  EXPECT_TRUE(rows.keys().empty());
  EXPECT_EQ(rows.bytes().size(), 16u);
}

TEST(NumberedRows, ColumnsBeyondTheKeysAreRefused) {
  NumberedRows rows = two_rows(false, false);
  const size_t size = rows.bytes().size();
  const uint32_t beyond = 3;
  std::memcpy(rows.memory().data() + size - sizeof beyond, &beyond, sizeof beyond);
  EXPECT_EQ(rows.decode(size).error().code, Code::kCorrupt);
}

RC_GTEST_PROP(NumberedRows, NonsenseIsRefusedOrMakesSense, (const std::vector<uint8_t>& nonsense)) {
  NumberedRows rows = two_rows(true, true);
  std::vector<std::byte> bytes(rows.bytes().begin(), rows.bytes().end());
  for (size_t i = 0; i < nonsense.size(); ++i) bytes[(i * 7 + nonsense[i]) % bytes.size()] = std::byte{nonsense[i]};
  const size_t size = bytes.size();
  rows.memory() = std::move(bytes);
  if (!rows.decode(size)) return;
  for (const uint32_t column : rows.columns()) RC_ASSERT(column < rows.keys().size());
  RC_ASSERT(rows.size() == 0 || rows.rows().ends.back() == rows.columns().size());
}

}  // namespace
}  // namespace pscloud

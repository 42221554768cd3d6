#include "data/column_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "data/localizer.h"

namespace pscloud {
namespace {

using testing::ElementsAre;

TEST(ColumnMatrix, HasEachEntryInItsColumn) {
  RowBlock block;
  block.keys = {10, 20, 20, 30, 10};
  block.values = {1, 2, 3, 4, 5};
  block.labels = {1, -1, 1};
  block.ends = {2, 2, 5};  // the second row has none
  const std::vector<uint32_t> columns = {0, 1, 1, 2, 0};
  const std::vector<uint32_t> places = {1, 0, ColumnMatrix::kNowhere};
  const ColumnMatrix matrix = transpose(block, columns, places, 2);
  EXPECT_THAT(matrix.rows_of(0), ElementsAre(0, 2));
  EXPECT_THAT(matrix.values_of(0), ElementsAre(2, 3));
  EXPECT_THAT(matrix.rows_of(1), ElementsAre(0, 2));
  EXPECT_THAT(matrix.values_of(1), ElementsAre(1, 5));
}

// Scores by columns are those by rows.
RC_GTEST_PROP(ColumnMatrix, IsTheSameMatrix, (const std::vector<std::vector<uint8_t>>& rows, bool ones)) {
  RowBlock block;
  std::vector<std::map<Key, float>> sums(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const uint8_t key : rows[i]) {
      const float value = ones ? 1 : static_cast<float>(key) + 1;
      block.keys.push_back(key);
      if (!ones) block.values.push_back(value);
      sums[i][key] += value;
    }
    block.end_row(1);
  }
  Localizer localizer;
  localizer.localize(block.keys);
  std::vector<uint32_t> places(localizer.keys().size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<uint32_t>(places.size() - 1 - i);
  const ColumnMatrix matrix = transpose(block, localizer.columns(), places, places.size());
  std::vector<std::map<Key, float>> found(rows.size());
  for (size_t column = 0; column < matrix.columns(); ++column) {
    const Key key = localizer.keys()[places.size() - 1 - column];
    for (size_t i = 0; i < matrix.rows_of(column).size(); ++i) {
      found[matrix.rows_of(column)[i]][key] += ones ? 1 : matrix.values_of(column)[i];
    }
  }
  RC_ASSERT(found == sums);
}

}  // namespace
}  // namespace pscloud

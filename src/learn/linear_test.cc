#include "learn/linear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace pscloud {
namespace {

using testing::ElementsAre;

// Rows (2, 0, 3), (), (0, -1, 1). Keys are not looked at, only counted.
RowBlock three_rows(bool with_values) {
  RowBlock block;
  block.labels = {1, 1, -1};
  block.ends = {2, 2, 4};
  block.keys = {7, 7, 7, 7};
  if (with_values) block.values = {2, 3, -1, 1};
  return block;
}
const std::vector<uint32_t> kColumns{0, 2, 1, 2};

TEST(Linear, ScoresAreProductsWithTheWeights) {
  const std::vector<float> weights{10, 100, 1000};
  std::vector<float> scores(3, -5);
  const RowBlock block = three_rows(true);
  score_rows(slice_of(block, 0, 3), kColumns, weights, scores);
  EXPECT_THAT(scores, ElementsAre(3020, 0, 900));
  const RowBlock ones = three_rows(false);
  score_rows(slice_of(ones, 0, 3), kColumns, weights, scores);
  EXPECT_THAT(scores, ElementsAre(1010, 0, 1100));
}

TEST(Linear, GradientIsTheTransposedProductWithTheSlopes) {
  const std::vector<float> slopes{1, 7, 10};
  std::vector<float> gradient(3, -5);
  const RowBlock block = three_rows(true);
  sum_gradient(slice_of(block, 0, 3), kColumns, slopes, gradient);
  EXPECT_THAT(gradient, ElementsAre(2, -10, 13));
  const RowBlock ones = three_rows(false);
  sum_gradient(slice_of(ones, 0, 3), kColumns, slopes, gradient);
  EXPECT_THAT(gradient, ElementsAre(1, 10, 11));
}

TEST(Linear, RowsMayBeginInTheMiddleOfABlock) {
  std::vector<float> scores(1);
  const RowBlock block = three_rows(true);
  score_rows(slice_of(block, 2, 1), std::span(kColumns).subspan(2), std::vector<float>{10, 100, 1000}, scores);
  EXPECT_THAT(scores, ElementsAre(900));
}

}  // namespace
}  // namespace pscloud

#include "learn/linear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace pscloud {
namespace {

using testing::ElementsAre;

// Rows (2, 0, 3), (), (0, -1, 1).
const std::vector<size_t> kRowEnds{2, 2, 4};
const std::vector<uint32_t> kColumns{0, 2, 1, 2};
const std::vector<float> kValues{2, 3, -1, 1};

TEST(Linear, ScoresAreProductsWithTheWeights) {
  const std::vector<float> weights{10, 100, 1000};
  std::vector<float> scores(3, -5);
  score_rows({.ends = kRowEnds, .columns = kColumns, .values = kValues}, weights, scores);
  EXPECT_THAT(scores, ElementsAre(3020, 0, 900));
  score_rows({.ends = kRowEnds, .columns = kColumns, .values = {}}, weights, scores);
  EXPECT_THAT(scores, ElementsAre(1010, 0, 1100));
}

TEST(Linear, GradientIsTheTransposedProductWithTheSlopes) {
  const std::vector<float> slopes{1, 7, 10};
  std::vector<float> gradient(3, -5);
  sum_gradient({.ends = kRowEnds, .columns = kColumns, .values = kValues}, slopes, gradient);
  EXPECT_THAT(gradient, ElementsAre(2, -10, 13));
  sum_gradient({.ends = kRowEnds, .columns = kColumns, .values = {}}, slopes, gradient);
  EXPECT_THAT(gradient, ElementsAre(1, 10, 11));
}

TEST(Linear, RowsMayBeginInTheMiddleOfABlock) {
  std::vector<float> scores(1);
  score_rows({.ends = std::span(kRowEnds).subspan(2),
              .first = 2,
              .columns = std::span(kColumns).subspan(2),
              .values = std::span(kValues).subspan(2)},
             std::vector<float>{10, 100, 1000}, scores);
  EXPECT_THAT(scores, ElementsAre(900));
}

}  // namespace
}  // namespace pscloud

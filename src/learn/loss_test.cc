#include "learn/loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace pscloud {
namespace {

struct Both {
  double loss;
  float slope;
};

Both of_one(Loss loss, float label, float score) {
  float slope = 0;
  const double sum = loss_and_slopes(loss, {&label, 1}, {&score, 1}, {&slope, 1});
  return {sum, slope};
}

class EachLoss : public testing::TestWithParam<Loss> {};

TEST_P(EachLoss, SlopeIsTheDerivativeOfTheLoss) {
  constexpr float kStep = 1e-2f;
  for (const float label : {-1.0f, 1.0f}) {
    for (float score = -4.03f; score < 4; score += 0.25f) {  // never within a step of a bend
      const double by_difference =
          (of_one(GetParam(), label, score + kStep).loss - of_one(GetParam(), label, score - kStep).loss) /
          (2.0 * kStep);
      EXPECT_NEAR(of_one(GetParam(), label, score).slope, by_difference, 1e-3) << label << " " << score;
    }
  }
}

TEST_P(EachLoss, SumsOverExamples) {
  const std::vector<float> labels{1, -1, 1};
  const std::vector<float> scores{0.5f, 0.25f, -2};
  std::vector<float> slopes(3);
  double expected = 0;
  for (size_t i = 0; i < 3; ++i) expected += of_one(GetParam(), labels[i], scores[i]).loss;
  EXPECT_DOUBLE_EQ(loss_and_slopes(GetParam(), labels, scores, slopes), expected);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(slopes[i], of_one(GetParam(), labels[i], scores[i]).slope);
}

INSTANTIATE_TEST_SUITE_P(All, EachLoss, testing::Values(Loss::kSquare, Loss::kLogit, Loss::kHinge, Loss::kSquareHinge));

TEST(Loss, ZeroMeansMinusOneWhereThereAreTwoClasses) {
  for (const Loss loss : {Loss::kLogit, Loss::kHinge, Loss::kSquareHinge}) {
    EXPECT_EQ(of_one(loss, 0, 0.7f).loss, of_one(loss, -1, 0.7f).loss);
    EXPECT_EQ(of_one(loss, 0, 0.7f).slope, of_one(loss, -1, 0.7f).slope);
  }
  EXPECT_NE(of_one(Loss::kSquare, 0, 0.7f).loss, of_one(Loss::kSquare, -1, 0.7f).loss);
}

TEST(Loss, LogitStaysFiniteForAnyScore) {
  EXPECT_FLOAT_EQ(of_one(Loss::kLogit, 1, -1000).loss, 1000);
  EXPECT_EQ(of_one(Loss::kLogit, 1, -1000).slope, -1);
  EXPECT_EQ(of_one(Loss::kLogit, 1, 1000).loss, 0);
  EXPECT_NEAR(of_one(Loss::kLogit, 1, 1000).slope, 0, 1e-30);
  EXPECT_TRUE(std::isfinite(of_one(Loss::kLogit, -1, std::numeric_limits<float>::max()).loss));
  EXPECT_DOUBLE_EQ(of_one(Loss::kLogit, 1, 0).loss, std::log(2.0));
}

}  // namespace
}  // namespace pscloud

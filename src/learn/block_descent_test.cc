#include "learn/block_descent.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace pscloud {
namespace {

// Some examples with features of each of `columns` columns, in two blocks.
struct Problem {
  ColumnMatrix matrix;
  std::vector<float> labels;

  Problem(size_t rows, size_t columns, bool values) {
    Random random(7);
    for (size_t row = 0; row < rows; ++row) labels.push_back(random.chance(0.4) ? 1 : 0);
    for (size_t column = 0; column < columns; ++column) {
      for (uint32_t row = 0; row < rows; ++row) {
        if (!random.chance(labels[row] > 0 && column % 3 == 0 ? 0.6 : 0.3)) continue;
        matrix.rows.push_back(row);
        if (values) matrix.values.push_back(random.normal(0, 1));
      }
      matrix.keys.push_back(column * 10);
      matrix.ends.push_back(matrix.rows.size());
    }
  }
  BlockDescent descent(const DescentOptions& options) const {
    return {matrix, labels, {matrix.columns() / 2, matrix.columns()}, options};
  }
};

// One worker: its sums are all there are.
void go_over(BlockDescent& descent, double threshold = 1e20) {
  for (size_t block = 0; block < descent.blocks(); ++block) {
    const std::vector<uint32_t> columns = descent.active_columns(block);
    std::vector<float> sums(2 * columns.size());
    descent.gradient(columns, sums);
    descent.update(columns, sums, threshold);
  }
}

double objective_of(const BlockDescent& descent, const StepRule& rule) {
  double sum = descent.loss();
  for (size_t i = 0; i < descent.keys().size(); ++i) {
    const double w = descent.weight(i);
    sum += rule.lambda1 * std::abs(w) + rule.lambda2 / 2 * w * w;
  }
  return sum;
}

TEST(BlockDescent, GradientIsTheSlopeOfTheLoss) {
  for (const bool values : {false, true}) {
    const Problem problem(200, 6, values);
    BlockDescent descent = problem.descent({});
    std::vector<float> weights = {0.5f, -1, 0, 2, 0.25f, -0.5f};
    descent.set_weights(weights);
    const std::vector<uint32_t> columns = {0, 1, 2, 3, 4, 5};
    std::vector<float> sums(12);
    descent.gradient(columns, sums);
    for (size_t i = 0; i < columns.size(); ++i) {
      constexpr float kStep = 1e-3f;
      std::vector<float> moved = weights;
      moved[i] += kStep;
      descent.set_weights(moved);
      const double above = descent.loss();
      moved[i] -= 2 * kStep;
      descent.set_weights(moved);
      EXPECT_NEAR(sums[2 * i], (above - descent.loss()) / (2 * kStep), 1e-2) << "column " << i;
    }
  }
}

TEST(BlockDescent, ObjectiveFallsWithEveryBlockToItsMinimum) {
  for (const bool values : {false, true}) {
    const StepRule rule{.lambda1 = 2, .lambda2 = 0.5};
    BlockDescent descent = Problem(500, 20, values).descent({.rule = rule});
    double before = objective_of(descent, rule);
    for (int i = 0; i < 300; ++i) {
      go_over(descent);
      const double now = objective_of(descent, rule);
      EXPECT_LE(now, before + 1e-3) << i;
      before = now;
    }
    // At the minimum no weight gains by moving.
    std::vector<uint32_t> columns(20);
    for (uint32_t i = 0; i < 20; ++i) columns[i] = i;
    std::vector<float> sums(40);
    descent.gradient(columns, sums);
    int zeros = 0;
    for (uint32_t i = 0; i < 20; ++i) {
      const double w = descent.weight(i);
      if (w == 0) {
        ++zeros;
        EXPECT_LE(std::abs(sums[2 * i]), rule.lambda1 + 0.01);
      } else {
        EXPECT_NEAR(sums[2 * i] + rule.lambda2 * w + (w > 0 ? 1 : -1) * rule.lambda1, 0, 0.02);
      }
    }
    EXPECT_GT(zeros, 0);
    EXPECT_LT(zeros, 20);
  }
}

TEST(BlockDescent, LargeValuesGiveFiniteSums) {
  ColumnMatrix matrix;
  matrix.keys = {1};
  matrix.ends = {2};
  matrix.rows = {0, 1};
  matrix.values = {1e5f, -1e5f};
  BlockDescent descent(matrix, std::vector<float>{1, 1}, {1}, {});
  for (int i = 0; i < 50; ++i) {
    std::vector<float> sums(2);
    descent.gradient(std::vector<uint32_t>{0}, sums);
    ASSERT_TRUE(std::isfinite(sums[0]) && std::isfinite(sums[1])) << i;
    descent.update(std::vector<uint32_t>{0}, sums, 1e20);
    descent.set_weights(std::vector<float>{static_cast<float>(i)});
  }
}

TEST(BlockDescent, ExtrapolationIsFasterAndArrivesAtTheSame) {
  const StepRule rule{.lambda1 = 1};
  BlockDescent plain = Problem(500, 40, false).descent({.rule = rule});
  BlockDescent faster = Problem(500, 40, false).descent({.rule = rule});
  faster.extrapolate(0);
  for (int i = 0; i < 12; ++i) {
    go_over(plain);
    go_over(faster);
    if (i < 11) faster.extrapolate(i / (i + 3.0));
  }
  EXPECT_LT(objective_of(faster, rule), objective_of(plain, rule));
  for (int i = 0; i < 1000; ++i) go_over(plain);
  for (int i = 0; i < 1000; ++i) go_over(faster);
  EXPECT_NEAR(objective_of(faster, rule), objective_of(plain, rule), 1e-3);
}

TEST(BlockDescent, AFilteredFeatureRestsUntilAllAreActiveAgain) {
  const StepRule rule{.lambda1 = 20};
  BlockDescent descent = Problem(500, 20, false).descent({.rule = rule});
  go_over(descent, 1);
  size_t active = 0;
  for (size_t block = 0; block < 2; ++block) active += descent.active_columns(block).size();
  EXPECT_GT(active, 0u);
  EXPECT_LT(active, 20u);
  go_over(descent, 1);
  descent.activate_all();
  EXPECT_EQ(descent.active_columns(0).size() + descent.active_columns(1).size(), 20u);
  // It can move again, from zero.
  BlockDescent other = Problem(500, 20, false).descent({.rule = {.lambda1 = 20}});
  for (int i = 0; i < 200; ++i) go_over(other);
  for (int i = 0; i < 200; ++i) go_over(descent);
  EXPECT_NEAR(objective_of(descent, rule), objective_of(other, rule), 1e-2);
}

TEST(BlockDescent, ViolationIsTheMostThatAWeightWantsToLeaveZero) {
  BlockDescent descent = Problem(500, 20, false).descent({.rule = {.lambda1 = 5}});
  std::vector<uint32_t> columns = descent.active_columns(0);
  std::vector<float> sums(2 * columns.size());
  descent.gradient(columns, sums);
  double most = 0;
  for (size_t i = 0; i < columns.size(); ++i) most = std::max(most, std::abs(double{sums[2 * i]}) - 5);
  descent.update(columns, sums, 1e20);
  EXPECT_DOUBLE_EQ(descent.take_violation(), most);
  EXPECT_EQ(descent.take_violation(), 0);
}

}  // namespace
}  // namespace pscloud

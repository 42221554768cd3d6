#include "learn/newton_descent.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace pscloud {
namespace {

// Examples with some of `columns` features, which go together in pairs.
struct NewtonProblem {
  std::vector<Key> keys;
  RowMatrix matrix;
  std::vector<float> labels;

  NewtonProblem(size_t rows, size_t columns, bool values) {
    Random random(7);
    for (size_t column = 0; column < columns; ++column) keys.push_back(column * 10);
    for (size_t row = 0; row < rows; ++row) {
      labels.push_back(random.chance(0.4) ? 1 : 0);
      bool before = false;
      for (size_t i = columns; i > 0; --i) {  // not in order
        const double chance = labels[row] > 0 && i % 3 == 0 ? 0.6 : 0.3;
        const bool has = i % 2 == 0 ? random.chance(chance) : random.chance(before ? 0.9 : 0.1);
        before = has;
        if (!has) continue;
        matrix.columns.push_back(static_cast<uint16_t>(i - 1));
        if (values) matrix.values.push_back(random.normal(0, 1));
      }
      matrix.ends.push_back(matrix.columns.size());
    }
  }
  NewtonDescent descent(const DescentOptions& options) const { return {keys, matrix, labels, options}; }

  // Every second row, as if it were another worker's.
  NewtonDescent half(const DescentOptions& options, size_t which) const {
    RowMatrix rows;
    std::vector<float> some_labels;
    for (size_t row = which; row < labels.size(); row += 2) {
      for (size_t i = row == 0 ? 0 : matrix.ends[row - 1]; i < matrix.ends[row]; ++i) {
        rows.columns.push_back(matrix.columns[i]);
        if (!matrix.values.empty()) rows.values.push_back(matrix.values[i]);
      }
      rows.ends.push_back(rows.columns.size());
      some_labels.push_back(labels[row]);
    }
    return {keys, rows, some_labels, options};
  }
};

void step_alone(NewtonDescent& descent) {
  std::vector<float> model(descent.model_size());
  descent.model(model);
  descent.propose(model);
  std::array<float, NewtonDescent::kShares.size()> trials;
  descent.trials(trials);
  descent.move(trials);
}

double penalized(const NewtonDescent& descent, const StepRule& rule) {
  double sum = descent.loss();
  for (size_t i = 0; i < descent.keys().size(); ++i) {
    const double w = descent.weight(i);
    sum += rule.lambda1 * std::abs(w) + rule.lambda2 / 2 * w * w;
  }
  return sum;
}

TEST(NewtonDescent, TheModelHasTheDerivativesOfTheLoss) {
  for (const bool values : {false, true}) {
    NewtonDescent descent = NewtonProblem(200, 5, values).descent({});
    const std::vector<float> weights = {0.5f, -1, 0, 2, 0.25f};
    descent.set_weights(weights);
    std::vector<float> model(descent.model_size());
    descent.model(model);
    const auto loss_with = [&](size_t i, float more, size_t j, float more_of_j) {
      std::vector<float> moved = weights;
      moved[i] += more;
      moved[j] += more_of_j;
      descent.set_weights(moved);
      return descent.loss();
    };
    constexpr float h = 0.0625f;
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_NEAR(model[i], (loss_with(i, h, i, 0) - loss_with(i, -h, i, 0)) / (2 * h), 0.05) << i;
      for (size_t j = 0; j <= i; ++j) {
        const double bend =
            (loss_with(i, h, j, h) - loss_with(i, h, j, -h) - loss_with(i, -h, j, h) + loss_with(i, -h, j, -h)) /
            (4 * h * h);
        EXPECT_NEAR(model[5 + JointStep::triangle(i) + j], bend, 0.1) << i << ", " << j;
      }
    }
  }
}

TEST(NewtonDescent, ArrivesInFewStepsAndNeverRises) {
  for (const bool values : {false, true}) {
    const StepRule rule{.lambda1 = 2, .lambda2 = 0.5};
    NewtonDescent descent = NewtonProblem(500, 20, values).descent({.rule = rule});
    double before = penalized(descent, rule);
    for (int i = 0; i < 12; ++i) {
      step_alone(descent);
      const double now = penalized(descent, rule);
      EXPECT_LE(now, before + 1e-4) << i;
      before = now;
    }
    std::vector<float> model(descent.model_size());
    descent.model(model);
    int zeros = 0;
    for (uint32_t i = 0; i < 20; ++i) {
      const double w = descent.weight(i);
      if (w == 0) {
        ++zeros;
        EXPECT_LE(std::abs(model[i]), rule.lambda1 + 0.01);
      } else {
        EXPECT_NEAR(model[i] + rule.lambda2 * w + (w > 0 ? 1 : -1) * rule.lambda1, 0, 0.01);
      }
    }
    EXPECT_GT(zeros, 0);
    EXPECT_LT(zeros, 20);
  }
}

TEST(NewtonDescent, WorkersTogetherGoAsOneAlone) {
  const NewtonProblem problem(500, 20, true);
  const DescentOptions options{.rule = {.lambda1 = 2}};
  NewtonDescent alone = problem.descent(options);
  NewtonDescent first = problem.half(options, 0);
  NewtonDescent second = problem.half(options, 1);
  const auto add = [](auto& to, const auto& more) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += more[i];
  };
  for (int i = 0; i < 8; ++i) {
    step_alone(alone);
    std::vector<float> sums(first.model_size());
    std::vector<float> others(first.model_size());
    first.model(sums);
    second.model(others);
    add(sums, others);
    first.propose(sums);
    second.propose(sums);
    std::array<float, NewtonDescent::kShares.size()> trials;
    std::array<float, NewtonDescent::kShares.size()> others_trials;
    first.trials(trials);
    second.trials(others_trials);
    add(trials, others_trials);
    first.move(trials);
    second.move(trials);
  }
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(first.weight(i), second.weight(i));
    EXPECT_NEAR(first.weight(i), alone.weight(i), 1e-3);
  }
}

// All examples with the feature are of one kind: without a penalty its weight would grow for ever.
TEST(NewtonDescent, WhatCanBeToldApartDoesNotRunAway) {
  RowMatrix matrix;
  std::vector<float> labels;
  for (int i = 0; i < 100; ++i) {
    matrix.columns.push_back(i % 2 == 0 ? 0 : 1);
    matrix.values.push_back(1e4f);
    matrix.ends.push_back(matrix.columns.size());
    labels.push_back(i % 2 == 0 ? 1 : -1);
  }
  NewtonDescent descent({1, 2}, matrix, labels, {});
  double before = descent.loss();
  for (int i = 0; i < 20; ++i) {
    step_alone(descent);
    ASSERT_TRUE(std::isfinite(descent.weight(0)));
    EXPECT_LE(descent.loss(), before);
    before = descent.loss();
  }
  EXPECT_LT(before, 1e-3);
}

}  // namespace
}  // namespace pscloud

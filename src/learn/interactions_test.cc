#include "learn/interactions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "learn/loss.h"

namespace pscloud {
namespace {

using testing::ElementsAre;

constexpr uint32_t kNone = Embeddings::kNone;

// Some rows of features with values, of columns that have an embedding or not.
struct SomeRows {
  static constexpr size_t kColumns = 12;

  SomeRows(size_t dimension, uint64_t seed) : dim(dimension) {
    Random random(seed);
    for (size_t column = 0; column < kColumns; ++column) {
      const bool embedded = column % 4 != 3;
      places.push_back(embedded ? static_cast<uint32_t>(values.size() / dim) : kNone);
      for (size_t k = 0; embedded && k < dim; ++k) values.push_back(random.normal(0, 0.5f));
    }
    for (int row = 0; row < 9; ++row) {
      for (uint64_t i = random.below(6); i > 0; --i) {  // some have no feature
        block.keys.push_back(7);
        block.values.push_back(random.normal(0, 1));
        columns.push_back(static_cast<uint32_t>(random.below(kColumns)));
      }
      block.end_row(random.chance(0.5) ? 1 : -1);
    }
  }

  RowSlice rows() const { return slice_of(block, 0, block.rows()); }
  Embeddings embeddings() const { return {dim, places, values}; }

  // By the definition: the product of the embeddings of each two features.
  double interaction(size_t row) const {
    double sum = 0;
    for (size_t i = block.begin_of(row); i < block.ends[row]; ++i) {
      for (size_t j = i + 1; j < block.ends[row]; ++j) {
        const auto a = embeddings().of(columns[i]);
        const auto b = embeddings().of(columns[j]);
        if (a.empty() || b.empty()) continue;
        for (size_t k = 0; k < dim; ++k) sum += double{a[k]} * b[k] * block.values[i] * block.values[j];
      }
    }
    return sum;
  }
  // The sum of log(1 + exp(-y * interaction)).
  double loss() const {
    double sum = 0;
    for (size_t row = 0; row < block.rows(); ++row) sum += std::log1p(std::exp(-block.labels[row] * interaction(row)));
    return sum;
  }

  size_t dim;
  RowBlock block;
  std::vector<uint32_t> columns;
  std::vector<uint32_t> places;
  std::vector<float> values;
};

// Rows (2, 0, 3) and (1, 1, 1); embeddings (1, 10), none, (2, -1). The second key's has no part in it.
TEST(Interactions, ASmallExampleByHand) {
  RowBlock block;
  block.labels = {1, -1};
  block.ends = {2, 5};
  block.keys = {7, 7, 7, 7, 7};
  block.values = {2, 3, 1, 1, 1};
  const std::vector<uint32_t> columns{0, 2, 0, 1, 2};
  const std::vector<uint32_t> places{0, kNone, 1};
  const std::vector<float> values{1, 10, 2, -1};
  const Embeddings embeddings{2, places, values};
  const RowSlice rows = slice_of(block, 0, 2);
  std::vector<float> sums(4), scores{100, 1000}, gradient(4, -5);
  add_interactions(rows, columns, embeddings, sums, scores);
  EXPECT_THAT(scores, ElementsAre(100 + (1 * 2 - 10 * 1) * 6, 1000 - 8));
  EXPECT_THAT(sums, ElementsAre(2 * 1 + 3 * 2, 2 * 10 - 3 * 1, 3, 9));
  sum_interaction_gradient(rows, columns, embeddings, sums, std::vector<float>{1, 10}, gradient);
  // 6 times the other's embedding, and 10 times it.
  EXPECT_THAT(gradient, ElementsAre(16 * 2, 16 * -1, 16 * 1, 16 * 10));

  block.values.clear();  // all are 1
  add_interactions(slice_of(block, 1, 1), std::span(columns).subspan(2), embeddings, std::span(sums).first(2),
                   std::span(scores).first(1));
  EXPECT_EQ(scores[0], 52 - 8);
}

TEST(Interactions, AreTheProductsOfAllPairs) {
  for (const size_t dim : {1, 3, 8, 19}) {
    const SomeRows some(dim, dim);
    std::vector<float> sums(some.block.rows() * dim), scores(some.block.rows());
    add_interactions(some.rows(), some.columns, some.embeddings(), sums, scores);
    for (size_t row = 0; row < scores.size(); ++row) EXPECT_NEAR(scores[row], some.interaction(row), 1e-4) << dim;
  }
}

TEST(Interactions, GradientsAreDifferencesOfTheLoss) {
  for (const size_t dim : {1, 5, 8}) {
    SomeRows some(dim, 10 + dim);
    std::vector<float> sums(some.block.rows() * dim), scores(some.block.rows()), gradient(some.values.size());
    add_interactions(some.rows(), some.columns, some.embeddings(), sums, scores);
    loss_and_slopes(Loss::kLogit, some.block.labels, scores, scores);
    sum_interaction_gradient(some.rows(), some.columns, some.embeddings(), sums, scores, gradient);
    for (size_t i = 0; i < some.values.size(); ++i) {
      const float before = some.values[i];
      constexpr float kStep = 0x1p-10f;
      some.values[i] = before + kStep;
      const double above = some.loss();
      some.values[i] = before - kStep;
      const double below = some.loss();
      some.values[i] = before;
      EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-4) << dim << ", number " << i;
    }
  }
}

}  // namespace
}  // namespace pscloud

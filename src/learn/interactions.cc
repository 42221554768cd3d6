#include "learn/interactions.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/vector_clones.h"

namespace pscloud {
namespace {

// Bare pointers, for the loops below.
struct EmbeddedRows {
  size_t rows;
  const size_t* ends;
  size_t first;
  const uint32_t* columns;
  const float* values;  // null: all are 1
  size_t dim;
  const uint32_t* places;
  const float* embeddings;
};

// The loops over k are the inner ones, and of their numbers none waits for another: they are vectorised. That is why
// `squares` is an array of dim and not one sum.
PSCLOUD_VECTOR_CLONES
void add_up(const EmbeddedRows& of, float* __restrict sums, float* __restrict squares, float* __restrict scores) {
  const size_t dim = of.dim;
  size_t feature = 0;
  for (size_t row = 0; row < of.rows; ++row) {
    float* __restrict const sum = sums + row * dim;
    for (size_t k = 0; k < dim; ++k) sum[k] = squares[k] = 0;
    for (const size_t end = of.ends[row] - of.first; feature < end; ++feature) {
      const uint32_t place = of.places[of.columns[feature]];
      if (place == Embeddings::kNone) continue;
      const float x = of.values == nullptr ? 1.0f : of.values[feature];
      const float* __restrict const embedding = of.embeddings + place * dim;
      for (size_t k = 0; k < dim; ++k) {
        const float product = embedding[k] * x;
        sum[k] += product;
        squares[k] += product * product;
      }
    }
    float twice = 0;
    for (size_t k = 0; k < dim; ++k) twice += sum[k] * sum[k] - squares[k];
    scores[row] += 0.5f * twice;
  }
}

PSCLOUD_VECTOR_CLONES
void add_up_gradient(const EmbeddedRows& of, const float* __restrict sums, const float* __restrict slopes,
                     float* __restrict gradient) {
  const size_t dim = of.dim;
  size_t feature = 0;
  for (size_t row = 0; row < of.rows; ++row) {
    const float* __restrict const sum = sums + row * dim;
    for (const size_t end = of.ends[row] - of.first; feature < end; ++feature) {
      const uint32_t place = of.places[of.columns[feature]];
      if (place == Embeddings::kNone) continue;
      const float x = of.values == nullptr ? 1.0f : of.values[feature];
      const float slope = slopes[row] * x;
      const float* __restrict const embedding = of.embeddings + place * dim;
      float* __restrict const derivative = gradient + place * dim;
      for (size_t k = 0; k < dim; ++k) derivative[k] += slope * (sum[k] - embedding[k] * x);
    }
  }
}

EmbeddedRows checked(const RowSlice& rows, std::span<const uint32_t> columns, const Embeddings& embeddings,
                     size_t sums) {
  const size_t features = rows.rows() == 0 ? 0 : rows.ends.back() - rows.first;
  CHECK(columns.size() == features, "{} columns for {} features", columns.size(), features);
  CHECK(sums == rows.rows() * embeddings.dim, "{} sums for {} rows", sums, rows.rows());
  return {.rows = rows.rows(),
          .ends = rows.ends.data(),
          .first = rows.first,
          .columns = columns.data(),
          .values = rows.values.empty() ? nullptr : rows.values.data(),
          .dim = embeddings.dim,
          .places = embeddings.places.data(),
          .embeddings = embeddings.values.data()};
}

}  // namespace

void add_interactions(const RowSlice& rows, std::span<const uint32_t> columns, const Embeddings& embeddings,
                      std::span<float> sums, std::span<float> scores) {
  CHECK(scores.size() == rows.rows(), "{} scores for {} rows", scores.size(), rows.rows());
  std::vector<float> squares(embeddings.dim);
  add_up(checked(rows, columns, embeddings, sums.size()), sums.data(), squares.data(), scores.data());
}

void sum_interaction_gradient(const RowSlice& rows, std::span<const uint32_t> columns, const Embeddings& embeddings,
                              std::span<const float> sums, std::span<const float> slopes, std::span<float> gradient) {
  CHECK(slopes.size() == rows.rows(), "{} slopes for {} rows", slopes.size(), rows.rows());
  CHECK(gradient.size() == embeddings.values.size(), "{} derivatives of {} numbers", gradient.size(),
        embeddings.values.size());
  std::ranges::fill(gradient, 0.0f);
  add_up_gradient(checked(rows, columns, embeddings, sums.size()), sums.data(), slopes.data(), gradient.data());
}

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "data/row_block.h"

namespace pscloud {

// The embeddings that some of the columns of a minibatch have: `dim` numbers each, one embedding after the other.
struct Embeddings {
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  size_t dim = 0;
  std::span<const uint32_t> places = {};  // of each column: which of the embeddings is its own, or kNone
  std::span<const float> values = {};

  size_t count() const { return dim == 0 ? 0 : values.size() / dim; }
  // Empty if it has none.
  std::span<const float> of(size_t column) const {
    if (places.empty() || places[column] == kNone) return {};
    return values.subspan(places[column] * dim, dim);
  }
};

// The part of a factorization machine (Rendle 2010) that is not linear: a row's score gets for each two of its features
// i and j, of values x, the product of their embeddings <v_i, v_j> x_i x_j. That is the sum over k of
//   1/2 [ (sum_i v_ik x_i)^2 - sum_i (v_ik x_i)^2 ]
// Features without embedding have no part in it. `columns` are as in linear.h.

// Adds to the scores. `sums` gets the inner sum of each row and k, which the gradient needs: rows * dim.
void add_interactions(const RowSlice& rows, std::span<const uint32_t> columns, const Embeddings& embeddings,
                      std::span<float> sums, std::span<float> scores);

// gradient[place * dim + k] = the sum over all rows of slope times the score's derivative by v_ik, which is
//   x_i * (sums[k] - v_ik x_i)
// Overwrites it.
void sum_interaction_gradient(const RowSlice& rows, std::span<const uint32_t> columns, const Embeddings& embeddings,
                              std::span<const float> sums, std::span<const float> slopes, std::span<float> gradient);

}  // namespace pscloud

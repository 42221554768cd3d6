#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "learn/descent.h"
#include "learn/joint_step.h"
#include "pscloud/types.h"

namespace pscloud {

// Features of examples, row by row, by the numbers of their columns.
struct RowMatrix {
  std::vector<size_t> ends;       // of the entries of each row; they begin where those of the row before end
  std::vector<uint16_t> columns;  // of each entry
  std::vector<float> values;      // of each entry; empty: all are 1
};

// One worker's part of Newton's method for logistic regression: all weights at once, by the whole matrix of second
// derivatives. For few features that is faster than blocks of them, by far where they go together. Each worker does
// the same step, from the same sums over all workers' examples. One thread.
//
// A step is: the workers add up model(), each calls propose() with the sums; they add up trials(), and each calls
// move().
class NewtonDescent final : public Descent {
 public:
  static constexpr size_t kColumnsMax = 512;
  // Which part of a proposed step to make: the best of these, or none.
  static constexpr std::array<double, 4> kShares = {1, 0.25, 0.0625, 0.015625};

  // `keys` of all workers, the same in each: at most kColumnsMax. Labels above 0 are 1, others -1.
  NewtonDescent(std::vector<Key> keys, RowMatrix matrix, std::span<const float> labels, const DescentOptions& options);

  size_t examples() const override { return labels_.size(); }
  double loss() const override { return loss_at(0); }
  std::span<const Key> keys() const override { return keys_; }
  double weight(size_t column) const override { return coordinates_[column].weight; }
  bool is_active(size_t) const override { return true; }
  void set_weights(std::span<const float> weights) override;
  ColumnState column_state(size_t column) const override;
  RowState row_state(size_t row) const override;
  void set_column_state(size_t column, const ColumnState& state) override;
  void set_row_state(size_t row, const RowState& state) override;

  // Gradient, and behind it curvature, of the loss of these examples.
  size_t model_size() const { return keys_.size() + JointStep::triangle(keys_.size()); }
  void model(std::span<float> out) const;
  void propose(std::span<const float> sums);
  // By how much each share of the proposed step changes the loss of these examples.
  void trials(std::span<float, kShares.size()> out) const;
  void move(std::span<const float, kShares.size()> sums);

 private:
  void find_margin_changes();
  double penalty_change(double share) const;
  double loss_at(double share) const;
  void go(double share);

  const std::vector<Key> keys_;
  const RowMatrix matrix_;
  const DescentOptions options_;
  JointStep joint_;
  std::vector<Coordinate> coordinates_;
  std::vector<double> changes_;  // proposed, of each weight
  // Of each row:
  std::vector<float> labels_;           // 1 or -1
  std::vector<double> margins_;         // label times score
  std::vector<float> misses_;           // 1 / (1 + exp(margin))
  std::vector<double> margin_changes_;  // proposed
};

}  // namespace pscloud

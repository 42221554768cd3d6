#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/column_matrix.h"
#include "learn/coordinate_step.h"
#include "learn/descent.h"

namespace pscloud {

// One worker's part of block coordinate descent for logistic regression: its examples, and the weights of their
// features. Each worker does the same step for a weight, from the same sums over all workers' examples, so that their
// weights stay equal without being sent. One thread.
class BlockDescent final : public Descent {
 public:
  // Columns are in blocks, one after the other, that end at `block_ends`. Labels above 0 are 1, others -1.
  BlockDescent(ColumnMatrix matrix, std::span<const float> labels, std::vector<size_t> block_ends,
               const DescentOptions& options);

  size_t examples() const override { return scores_.size(); }
  double loss() const override;
  std::span<const Key> keys() const override { return matrix_.keys; }
  double weight(size_t column) const override { return coordinates_[column].weight; }
  bool is_active(size_t column) const override { return active_[column] != 0; }
  void set_weights(std::span<const float> weights) override;
  ColumnState column_state(size_t column) const override;
  RowState row_state(size_t row) const override;
  void set_column_state(size_t column, const ColumnState& state) override;
  void set_row_state(size_t row, const RowState& state) override;

  size_t blocks() const { return block_ends_.size(); }

  // The active columns of a block,
  std::vector<uint32_t> active_columns(size_t block) const;
  // and of each of them gradient and curvature of the loss of these examples. Of `together` blocks one may be computed
  // before the steps of another are made: the curvature is that of all of them moving at once.
  void gradient(std::span<const uint32_t> columns, std::span<float> out, size_t together = 1) const;
  // A step of each, by gradient and curvature over all workers. A weight at zero that the gradient keeps there by more
  // than `threshold` becomes inactive.
  void update(std::span<const uint32_t> columns, std::span<const float> sums, double threshold);

  // Goes on by this share of the way from where it was at the last call. Descent along a narrow valley takes short
  // steps in one direction: this makes them longer.
  void extrapolate(double share);

  void activate_all() { active_.assign(active_.size(), 1); }

  // The most by which an active weight wanted to leave zero since the last call.
  double take_violation();

 private:
  void measure_crowding();
  void move(size_t column, double change);

  const ColumnMatrix matrix_;
  const std::vector<size_t> block_ends_;
  const DescentOptions options_;
  // Of each row. The label is 1 where the slope is below zero, else -1: it is never zero.
  std::vector<float> slopes_;  // of the loss, by the score
  std::vector<double> scores_;
  std::vector<Coordinate> coordinates_;  // of each column, as the two below
  std::vector<uint8_t> active_;
  std::vector<uint8_t> ones_;    // all of its values are 1
  std::vector<float> crowding_;  // features that an example with this one has of its block, this one among them: mean
  double violation_ = 0;
  std::vector<double> earlier_weights_;  // at the last call of extrapolate(), as the scores; none before the first
  std::vector<double> earlier_scores_;
};

}  // namespace pscloud

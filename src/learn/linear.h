#pragma once

#include <cstdint>
#include <span>

#include "data/row_block.h"

namespace pscloud {

// `columns` has of each feature of the rows the place of its key among the weights, as a Localizer makes them.

// scores[row] = the sum over its features of weight times value.
void score_rows(const RowSlice& rows, std::span<const uint32_t> columns, std::span<const float> weights,
                std::span<float> scores);

// gradient[column] = the sum over all rows of slope times value. Overwrites it.
void sum_gradient(const RowSlice& rows, std::span<const uint32_t> columns, std::span<const float> slopes,
                  std::span<float> gradient);

}  // namespace pscloud

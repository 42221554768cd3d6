#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "pscloud/error.h"
#include "pscloud/table.h"
#include "pscloud/types.h"

namespace pscloud {

// Checks that every table makes before it changes anything. kInvalid names what is wrong and where.

bool keys_increase(std::span<const Key> keys);
Result<> check_keys_increase(std::span<const Key> keys);

Result<> check_float_count(size_t rows, size_t width, size_t floats);

// The position of the first NaN or infinity; values.size() if there is none.
// `next`, of the same size or null, is what will be used together with `values`: the check is done from caches while
// memory would have nothing to do, so it asks for the beginning of `next` meanwhile.
size_t first_not_finite(std::span<const float> values, const float* next = nullptr);

// Rows that shall be put in place of others: `each` floats of each key, all finite; no key twice, in any order.
Result<> check_rows_to_set(std::span<const Key> keys, std::span<const float> floats, size_t each);

// What `spec` starts a row with: uniform in [low, high] from the seed, the key and the column, so a row is the same
// whichever server makes it, and whenever.
void fill_initial(const InitialValues& initial, Key key, std::span<float> row);

}  // namespace pscloud

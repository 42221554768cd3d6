#pragma once

#include <span>
#include <string_view>

#include "pscloud/error.h"
#include "pscloud/table.h"

namespace pscloud {

// "key_caching", "lz4", ...; "unknown" for a kind that is none.
std::string_view filter_name(FilterKind kind);

// kInvalid names the right order unless each filter finds what it works on:
//   noise, then one of fixed_point, float16, bfloat16, then drop_zeros, then one of lz4, zstd;
//   key_caching anywhere before lz4 and zstd; none twice.
// The first three work on whole rows of values, key_caching on the plain list of keys, compressors on any bytes.
Result<> check_filter_order(std::span<const FilterKind> kinds);

}  // namespace pscloud

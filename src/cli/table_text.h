#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pscloud {

// Columns as wide as what stands in them; the last as it is. To stdout.
void print_table(const std::vector<std::vector<std::string>>& rows);

// How long ago that was: "90s", "5h".
std::string age_text(int64_t unix_ms);

// What a run has cost, in a line; nothing if it costs nothing. `incomplete`: the price of some machines is not known.
void print_cost(double usd_per_hour, double usd, bool incomplete);

}  // namespace pscloud

#include "cli/table_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

namespace pscloud {

std::string age_text(int64_t unix_ms) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t s =
      std::max<int64_t>(0, (std::chrono::duration_cast<std::chrono::milliseconds>(now).count() - unix_ms)) / 1000;
  if (s < 120) return fmt::format("{}s", s);
  if (s < 120 * 60) return fmt::format("{}m", s / 60);
  if (s < 48 * 3600) return fmt::format("{}h", s / 3600);
  return fmt::format("{}d", s / 86400);
}

void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
  }
}

void print_cost(double usd_per_hour, double usd, bool incomplete) {
  if (usd_per_hour > 0) {
    fmt::print("cost {}{:.2f} USD, {:.2f} an hour{}\n", incomplete ? "more than " : "", usd, usd_per_hour,
               incomplete ? "; the price of some machines is not known" : "");
  } else if (incomplete) {
    fmt::print("cost unknown: the price of its machines is not known\n");
  }
}

}  // namespace pscloud

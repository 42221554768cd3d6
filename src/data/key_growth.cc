#include "data/key_growth.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace pscloud {
namespace {

constexpr int kRankCells = 60;

// Of more than `often` events, where `mean` are to be expected (Poisson).
double chance_above(uint64_t often, double mean) {
  constexpr uint64_t kSummed = 1000;
  if (often == 0) return -std::expm1(-mean);
  if (often > kSummed) return mean > static_cast<double>(often) ? 1 : 0;  // that far out it is nearly a step
  double below = 0;
  for (uint64_t i = 0; i <= often; ++i) {
    const auto count = static_cast<double>(i);
    below += std::exp(count * std::log(mean) - mean - std::lgamma(count + 1));
  }
  return std::max(0.0, 1 - below);
}

// A sample: keys drawn, and how many of them are different.
struct GrowthPoint {
  double drawn = 0;
  double different = 0;
};

// The key of rank r comes with a chance of r^-power, as its share of all up to rank `ranks`. Ranks are taken together
// in cells, each as wide as the one before times a factor.
class RankLaw {
 public:
  RankLaw(double power, double ranks) {
    const double factor = std::exp(std::log(ranks) / kRankCells);
    double all = 0;
    double begin = 1;
    for (Cell& cell : cells_) {
      const double end = begin * factor;
      cell = {.keys = end - begin, .chance = std::pow(begin * std::sqrt(factor), -power)};
      all += cell.keys * cell.chance;
      begin = end;
    }
    for (Cell& cell : cells_) cell.chance /= all;
  }
  // How many different keys to expect that come more than `often` times.
  double different(double drawn, uint64_t often = 0) const {
    double sum = 0;
    for (const Cell& cell : cells_) sum += cell.keys * chance_above(often, drawn * cell.chance);
    return sum;
  }

 private:
  struct Cell {
    double keys = 0;
    double chance = 0;  // of each
  };
  Cell cells_[kRankCells];
};

struct GrowthFit {
  double error = std::numeric_limits<double>::infinity();
  double growth = 1;  // keys of all that come often enough, for each of the sample
};

// Of keys that come more than `often` times in `times` the sample, beside those that come as often in proportion in it.
GrowthFit fit(std::span<const GrowthPoint> points, double times, uint64_t often) {
  constexpr double kPowerMax = 2;
  constexpr double kPowerStep = 0.1;
  constexpr double kRanksFactor = 1.1;  // from one try to the next
  constexpr int kRanksTried = 80;       // up to 2000 times what was seen
  GrowthFit best;
  for (double power = 0; power <= kPowerMax; power += kPowerStep) {
    double ranks = std::max(2.0, points.back().different);
    for (int i = 0; i < kRanksTried; ++i, ranks *= kRanksFactor) {
      const RankLaw law(power, ranks);
      double error = 0;
      for (const GrowthPoint& point : points) {
        error += std::pow(std::log(law.different(point.drawn) / point.different), 2);
      }
      if (error >= best.error) continue;
      const double drawn = points.back().drawn;
      const double common = law.different(drawn, static_cast<uint64_t>(static_cast<double>(often) / times));
      best = {error, law.different(drawn * times, often) / std::max(common, 1e-9)};
    }
  }
  return best;
}

// For less than all of the sample: between two of its parts the keys grow by a power of what is drawn.
double different_of(std::span<const GrowthPoint> points, double drawn) {
  size_t next = 1;
  while (next + 1 < points.size() && points[next].drawn < drawn) ++next;
  if (next >= points.size()) return std::min(drawn, points[0].different);
  const GrowthPoint& from = points[next - 1];
  const GrowthPoint& to = points[next];
  const double power = std::log(to.different / from.different) / std::log(to.drawn / from.drawn);
  return std::min(drawn, from.different * std::pow(drawn / from.drawn, power));
}

// A key that more than half of the rows have says nothing about others.
bool is_everywhere(uint64_t count, uint64_t rows) { return 2 * count > rows; }

}  // namespace

void KeyGrowth::add(std::span<const Key> keys) {
  // Of eight rows one, one, two and four.
  const int deal = rows_ % 8 == 0 ? 0 : kDeals - 1 - std::countr_zero(rows_ % 8);
  dealt_[deal].insert(dealt_[deal].end(), keys.begin(), keys.end());
  ++rows_;
}

uint64_t KeyGrowth::features() const {
  uint64_t sum = 0;
  for (const auto& dealt : dealt_) sum += dealt.size();
  return sum;
}

double KeyGrowth::keys_in(double rows, uint64_t often) const {
  const double times = rows / static_cast<double>(std::max<uint64_t>(1, rows_));
  double common = 0;  // that came often enough in the sample, in proportion
  std::vector<Key> seen;
  std::vector<GrowthPoint> points;
  double everywhere_drawn = 0;
  double everywhere = 0;
  for (const auto& dealt : dealt_) {
    std::vector<Key> more = dealt;
    std::ranges::sort(more);
    std::vector<Key> merged;
    std::ranges::merge(seen, more, std::back_inserter(merged));
    seen = std::move(merged);
    double different = 0;
    everywhere = everywhere_drawn = 0;
    for (size_t i = 0, end = 0; i < seen.size(); i = end) {
      while (end < seen.size() && seen[end] == seen[i]) ++end;
      ++different;
      if (&dealt != &dealt_[kDeals - 1]) continue;
      if (static_cast<double>(end - i) * times > static_cast<double>(often)) ++common;
      if (!is_everywhere(end - i, rows_)) continue;
      ++everywhere;
      everywhere_drawn += static_cast<double>(end - i);
    }
    const auto drawn = static_cast<double>(seen.size());
    if (!seen.empty() && (points.empty() || points.back().drawn < drawn)) points.push_back({drawn, different});
  }
  if (often > 0 && times <= 1) return common;
  if (points.empty() || times == 1) return points.empty() ? 0 : points.back().different;
  if (times < 1) return different_of(points, points.back().drawn * times);
  if (everywhere == points.back().different) return common;
  const GrowthFit all = fit(points, times, often);
  if (everywhere == 0) return common * all.growth;

  // The same without those that are in nearly every row: counts beside categories would bend the law.
  const double share = 1 - everywhere_drawn / points.back().drawn;
  std::vector<GrowthPoint> rest;
  for (const GrowthPoint& point : points) {
    rest.push_back({point.drawn * share, std::max(1.0, point.different - everywhere)});
  }
  const GrowthFit others = fit(rest, times, often);
  if (all.error < others.error) return common * all.growth;
  const double common_everywhere = std::min(common, everywhere);
  return (common - common_everywhere) * others.growth + common_everywhere;
}

}  // namespace pscloud

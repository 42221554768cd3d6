#include "data/zipf_ranks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace pscloud {
namespace {

// The frequencies against their formula, (r + 1)^-s over the sum of all.
TEST(ZipfRanks, ComeAsOftenAsTheFormulaSays) {
  constexpr int kRanks = 50;
  constexpr int kDraws = 200000;
  for (const double s : {0.5, 1.0, 1.1, 2.0}) {
    const ZipfRanks zipf(kRanks, s);
    Random random(7);
    std::vector<int> counts(kRanks);
    for (int i = 0; i < kDraws; ++i) ++counts.at(zipf.draw(random));
    double sum = 0;
    for (int r = 0; r < kRanks; ++r) sum += std::pow(r + 1, -s);
    for (int r = 0; r < kRanks; ++r) {
      const double expected = kDraws * std::pow(r + 1, -s) / sum;
      EXPECT_NEAR(counts[r], expected, 5 * std::sqrt(expected)) << "rank " << r << ", s " << s;
    }
  }
}

TEST(ZipfRanks, OneRankIsAlwaysDrawn) {
  Random random(1);
  EXPECT_EQ(ZipfRanks(1, 1.1).draw(random), 0u);
}

}  // namespace
}  // namespace pscloud

#include "learn/logistic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "learn/vector_exp.h"

namespace pscloud {
namespace {

TEST(VectorExp, IsExpToThePrecisionOfFloat) {
  for (float x = -80; x <= 80; x += 0.37f) {
    EXPECT_NEAR(vector_exp(x) / std::exp(double{x}), 1, 2e-7) << x;
  }
  EXPECT_EQ(vector_exp(0), 1);
  EXPECT_EQ(vector_exp(1e30f), vector_exp(80));
  EXPECT_EQ(vector_exp(-HUGE_VALF), vector_exp(-80));
  EXPECT_GT(vector_exp(-HUGE_VALF), 0);
}

// As many as fill lanes and blocks of them, and some more or less.
std::vector<float> some_margins(size_t count) {
  std::vector<float> margins;
  for (size_t i = 0; i < count; ++i) margins.push_back(std::sin(static_cast<float>(i)) * static_cast<float>(i % 50));
  return margins;
}

TEST(Logistic, ChancesAndLossAreThoseOfTheFormula) {
  for (const size_t count : {0, 1, 15, 16, 17, 511, 512, 513, 3000}) {
    const std::vector<float> margins = some_margins(count);
    std::vector<float> chances(count);
    miss_chances(margins, chances);
    double loss = 0;
    for (size_t i = 0; i < count; ++i) {
      EXPECT_NEAR(chances[i] * (1 + std::exp(double{margins[i]})), 1, 1e-6) << margins[i];
      loss += std::log1p(std::exp(-double{margins[i]}));
    }
    EXPECT_NEAR(logistic_loss(margins), loss, 1e-7 * loss) << count;
  }
}

TEST(Logistic, NoMarginIsTooLarge) {
  const std::vector<float> margins(1000, -1e30f);
  EXPECT_NEAR(logistic_loss(margins) / 1e33, 1, 1e-6);
  EXPECT_LT(logistic_loss(std::vector<float>(1000, 1e30f)), 1e-30);
  std::vector<float> chances(1000);
  miss_chances(margins, chances);
  EXPECT_EQ(chances[999], 1);
  miss_chances(std::vector<float>(1000, 1e30f), chances);
  EXPECT_GT(chances[0], 0);
}

}  // namespace
}  // namespace pscloud

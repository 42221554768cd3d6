#include "learn/logistic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "base/check.h"
#include "base/vector_clones.h"
#include "learn/vector_exp.h"

namespace pscloud {
namespace {

constexpr size_t kLanes = 16;
constexpr size_t kFactors = 32;  // of at most 2, in a product that must not overflow

PSCLOUD_VECTOR_CLONES
void miss_chances_of(const float* margins, size_t count, float* out) {
  for (size_t i = 0; i < count; ++i) out[i] = 1.0f / (1.0f + vector_exp(margins[i]));
}

// A loss is log(1 + exp(-|margin|)), and where the margin is below zero as much as it is. The logarithms are those of
// products, the rest is summed up.
PSCLOUD_VECTOR_CLONES
void lanes_of_loss(const float* margins, size_t count, double* __restrict products, double* __restrict sums) {
  for (size_t i = 0; i < count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float margin = margins[i + lane];
      products[lane] *= 1.0 + vector_exp(-std::abs(margin));
      sums[lane] += std::max(0.0f, -margin);
    }
  }
}

}  // namespace

void miss_chances(std::span<const float> margins, std::span<float> out) {
  CHECK(margins.size() == out.size(), "{} margins, {} results", margins.size(), out.size());
  miss_chances_of(margins.data(), margins.size(), out.data());
}

double logistic_loss(std::span<const float> margins) {
  double loss = 0;
  std::array<double, kLanes> sums{};
  for (size_t first = 0; first < margins.size(); first += kLanes * kFactors) {
    const size_t count = std::min(kLanes * kFactors, margins.size() - first);
    const size_t whole = count / kLanes * kLanes;
    std::array<double, kLanes> products;
    products.fill(1);
    lanes_of_loss(margins.data() + first, whole, products.data(), sums.data());
    if (whole < count) {  // the others of the last lanes lose nothing
      std::array<float, kLanes> last;
      last.fill(HUGE_VALF);
      std::copy_n(margins.data() + first + whole, count - whole, last.data());
      lanes_of_loss(last.data(), kLanes, products.data(), sums.data());
    }
    // One logarithm for all of them, which are at most 2^528.
    double product = 1;
    for (const double one : products) product *= one;
    loss += std::log(product);
  }
  for (const double sum : sums) loss += sum;
  return loss;
}

}  // namespace pscloud

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "base/vector_clones.h"
#include "engine/table/updater_builtin.h"

namespace pscloud {
namespace {

struct Numbers {
  float alpha;
  float beta;
  float lambda1;
  float lambda2;
  float decay;
};

inline float keep_finite(float x) { return std::min(std::max(x, -FLT_MAX), FLT_MAX); }

PSCLOUD_VECTOR_CLONES
void update(float* __restrict values, float* __restrict states, const float* __restrict pushed, size_t count,
            Numbers numbers) {
  const auto [alpha, beta, lambda1, lambda2, decay] = numbers;
  for (size_t i = 0; i < count; ++i) {
    const float g = pushed[i];
    const float s_before = states[2 * i + 1];
    // Kept finite: the square of a large gradient is not, and one infinity makes NaNs of all that follows.
    const float s = std::sqrt(std::min(s_before * s_before + g * g, FLT_MAX));
    const float z = keep_finite(states[2 * i] + (g - (s - s_before) / alpha * values[i]));
    // Where |z| <= lambda1 the quotient may be 0/0; it is not taken then.
    const float w = (std::copysign(lambda1, z) - z) / ((beta + decay * s) / alpha + lambda2);
    states[2 * i] = z;
    states[2 * i + 1] = s;
    values[i] = std::abs(z) <= lambda1 ? 0.0f : keep_finite(w);
  }
}

// FTRL-Proximal for each coordinate (McMahan et al. 2013, algorithm 1).
// State of each value: z and s = sqrt(n), n being the sum of squared gradients. The root is kept, as the original
// parameter server did, since every use of n takes it. The pairs (z, s) lie in the order of the values, so rows of any
// width are one flat loop.
//   s' = sqrt(s^2 + g^2);  z += g - (s'-s)/alpha * w;  s = s'
//   w = 0 if |z| <= lambda1, else -(z - sign(z)*lambda1) / ((beta + decay*s)/alpha + lambda2)
// A decay of 0 makes the rate of all steps alpha/beta.
class Ftrl final : public RunUpdater {
 public:
  explicit Ftrl(const Numbers& numbers) : numbers_(numbers) {}

  size_t state_width(size_t width) const override { return 2 * width; }

  void update_rows(float* values, float* states, const float* pushed, size_t rows, size_t width) const override {
    pscloud::update(values, states, pushed, rows * width, numbers_);
  }

  // The z that gives back w before any gradient has come, s being 0.
  void state_of(std::span<const float> value, std::span<float> state) const override {
    const float shrinkage = numbers_.beta / numbers_.alpha + numbers_.lambda2;
    for (size_t i = 0; i < value.size(); ++i) {
      const float w = value[i];
      state[2 * i] = w == 0 ? 0 : -w * shrinkage - std::copysign(numbers_.lambda1, w);
      state[2 * i + 1] = 0;
    }
  }

 private:
  const Numbers numbers_;
};

}  // namespace

Result<std::unique_ptr<Updater>> make_ftrl(const UpdaterSpec& spec) {
  const auto numbers = TRY(read_numbers(spec, {{"alpha", 0.1f, NumberRange::kPositive},
                                               {"beta", 1.0f, NumberRange::kNotNegative},
                                               {"lambda1", 0.0f, NumberRange::kNotNegative},
                                               {"lambda2", 0.0f, NumberRange::kNotNegative},
                                               {"decay", 1.0f, NumberRange::kNotNegative}}));
  return std::make_unique<Ftrl>(Numbers{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]});
}

}  // namespace pscloud

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "base/vector_clones.h"
#include "engine/table/updater_builtin.h"

namespace pscloud {
namespace {

// Floats count exactly up to here. By then the corrections below are 1 for any beta that trains.
constexpr float kStepsMax = 0x1p24f;

// What changes with the steps of a row, and what does not.
struct Factors {
  float rate = 0;     // learning_rate / (1-beta1^t)
  float v_scale = 0;  // 1 / (1-beta2^t)
  float beta1 = 0;
  float beta2 = 0;
  float epsilon = 0;
};

PSCLOUD_VECTOR_CLONES
void update_row(float* __restrict value, float* __restrict m, float* __restrict v, const float* __restrict pushed,
                size_t width, Factors factors) {
  const auto [rate, v_scale, beta1, beta2, epsilon] = factors;
  for (size_t i = 0; i < width; ++i) {
    const float g = pushed[i];
    m[i] = beta1 * m[i] + (1 - beta1) * g;
    v[i] = std::min(beta2 * v[i] + (1 - beta2) * g * g, FLT_MAX);  // finite, so that a checkpoint can be loaded
    value[i] -= rate * m[i] / (std::sqrt(v[i] * v_scale) + epsilon);
  }
}

// Kingma and Ba 2015, algorithm 1, with a step count for each row: in a sparse table rows are pushed at different
// times, and the correction must know how often this one was.
// State of a row: m for each value, v for each value, steps.
//   t += 1;  m = beta1*m + (1-beta1)*g;  v = beta2*v + (1-beta2)*g^2
//   w -= learning_rate * (m / (1-beta1^t)) / (sqrt(v / (1-beta2^t)) + epsilon)
class Adam final : public RunUpdater {
 public:
  Adam(float learning_rate, float beta1, float beta2, float epsilon)
      : learning_rate_(learning_rate), beta1_(beta1), beta2_(beta2), epsilon_(epsilon) {}

  size_t state_width(size_t width) const override { return 2 * width + 1; }

  void update_rows(float* values, float* states, const float* pushed, size_t rows, size_t width) const override {
    Factors factors;
    float factors_steps = 0;
    for (size_t row = 0; row < rows; ++row) {
      float& steps = states[2 * width];
      steps = std::min(steps + 1, kStepsMax);
      // Rows of a dense table have all the same count: compute its powers once.
      if (steps != factors_steps) factors = factors_at(steps);
      factors_steps = steps;
      update_row(values, states, states + width, pushed, width, factors);
      values += width;
      states += 2 * width + 1;
      pushed += width;
    }
  }

 private:
  Factors factors_at(float steps) const {
    const double left1 = 1 - std::pow(static_cast<double>(beta1_), steps);
    const double left2 = 1 - std::pow(static_cast<double>(beta2_), steps);
    return {static_cast<float>(learning_rate_ / left1), static_cast<float>(1 / left2), beta1_, beta2_, epsilon_};
  }

  const float learning_rate_;
  const float beta1_;
  const float beta2_;
  const float epsilon_;
};

}  // namespace

Result<std::unique_ptr<Updater>> make_adam(const UpdaterSpec& spec) {
  const auto numbers = TRY(read_numbers(spec, {{"learning_rate", 0.001f, NumberRange::kPositive},
                                               {"beta1", 0.9f, NumberRange::kFraction},
                                               {"beta2", 0.999f, NumberRange::kFraction},
                                               {"epsilon", 1e-8f, NumberRange::kPositive}}));
  return std::make_unique<Adam>(numbers[0], numbers[1], numbers[2], numbers[3]);
}

}  // namespace pscloud

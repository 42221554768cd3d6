#include <algorithm>
#include <cfloat>
#include <cmath>

#include "base/vector_clones.h"
#include "engine/table/proximal.h"
#include "engine/table/updater_builtin.h"

namespace pscloud {
namespace {

struct Numbers {
  float learning_rate;
  float epsilon;
  float lambda1;
  float lambda2;
};

PSCLOUD_VECTOR_CLONES
void update(float* __restrict values, float* __restrict states, const float* __restrict pushed, size_t count,
            Numbers numbers) {
  for (size_t i = 0; i < count; ++i) {
    const float g = pushed[i];
    const float n = std::min(states[i] + g * g, FLT_MAX);  // finite, so that a checkpoint can be loaded
    const float rate = numbers.learning_rate / (std::sqrt(n) + numbers.epsilon);
    states[i] = n;
    values[i] = proximal(values[i] - rate * g, rate, numbers.lambda1, numbers.lambda2);
  }
}

// Duchi, Hazan and Singer 2011. State: n, the sum of squared gradients, one for each value.
//   n += g^2;  rate = learning_rate / (sqrt(n) + epsilon);  w = proximal(w - rate * g)
class Adagrad final : public RunUpdater {
 public:
  explicit Adagrad(const Numbers& numbers) : numbers_(numbers) {}

  size_t state_width(size_t width) const override { return width; }

  void update_rows(float* values, float* states, const float* pushed, size_t rows, size_t width) const override {
    pscloud::update(values, states, pushed, rows * width, numbers_);
  }

 private:
  const Numbers numbers_;
};

}  // namespace

Result<std::unique_ptr<Updater>> make_adagrad(const UpdaterSpec& spec) {
  // An epsilon of 0 would make 0/0 of a gradient of 0.
  const auto numbers = TRY(read_numbers(spec, {{"learning_rate", 0.01f, NumberRange::kPositive},
                                               {"epsilon", 1e-8f, NumberRange::kPositive},
                                               {"lambda1", 0.0f, NumberRange::kNotNegative},
                                               {"lambda2", 0.0f, NumberRange::kNotNegative}}));
  return std::make_unique<Adagrad>(Numbers{numbers[0], numbers[1], numbers[2], numbers[3]});
}

}  // namespace pscloud

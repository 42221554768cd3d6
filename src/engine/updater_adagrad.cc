#include <cmath>

#include "engine/updater_builtin.h"

namespace pscloud {
namespace {

// Duchi, Hazan and Singer 2011. State: n, the sum of squared gradients, one for each value.
//   n += g^2;  w -= learning_rate * g / (sqrt(n) + epsilon)
class Adagrad final : public RunUpdater {
 public:
  Adagrad(float learning_rate, float epsilon) : learning_rate_(learning_rate), epsilon_(epsilon) {}

  size_t state_width(size_t width) const override { return width; }

  void update_rows(float* __restrict values, float* __restrict states, const float* __restrict pushed, size_t rows,
                   size_t width) const override {
    const float learning_rate = learning_rate_;
    const float epsilon = epsilon_;
    for (size_t i = 0; i < rows * width; ++i) {
      const float g = pushed[i];
      const float n = states[i] + g * g;
      states[i] = n;
      values[i] -= learning_rate * g / (std::sqrt(n) + epsilon);
    }
  }

 private:
  const float learning_rate_;
  const float epsilon_;
};

}  // namespace

Result<std::unique_ptr<Updater>> make_adagrad(const UpdaterSpec& spec) {
  // An epsilon of 0 would make 0/0 of a gradient of 0.
  const auto numbers = TRY(read_numbers(
      spec, {{"learning_rate", 0.01f, NumberRange::kPositive}, {"epsilon", 1e-8f, NumberRange::kPositive}}));
  return std::make_unique<Adagrad>(numbers[0], numbers[1]);
}

}  // namespace pscloud

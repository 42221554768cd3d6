#include "base/vector_clones.h"
#include "engine/table/proximal.h"
#include "engine/table/updater_builtin.h"

namespace pscloud {
namespace {

PSCLOUD_VECTOR_CLONES
void descend(float* __restrict values, const float* __restrict pushed, size_t count, float learning_rate) {
  for (size_t i = 0; i < count; ++i) values[i] -= learning_rate * pushed[i];
}

PSCLOUD_VECTOR_CLONES
void descend_penalised(float* __restrict values, const float* __restrict pushed, size_t count, float learning_rate,
                       float lambda1, float lambda2) {
  for (size_t i = 0; i < count; ++i) {
    values[i] = proximal(values[i] - learning_rate * pushed[i], learning_rate, lambda1, lambda2);
  }
}

// w = proximal(w - learning_rate * g).
class Sgd final : public RunUpdater {
 public:
  Sgd(float learning_rate, float lambda1, float lambda2)
      : learning_rate_(learning_rate), lambda1_(lambda1), lambda2_(lambda2) {}

  void update_rows(float* values, float*, const float* pushed, size_t rows, size_t width) const override {
    if (lambda1_ == 0 && lambda2_ == 0) return descend(values, pushed, rows * width, learning_rate_);
    descend_penalised(values, pushed, rows * width, learning_rate_, lambda1_, lambda2_);
  }

 private:
  const float learning_rate_;
  const float lambda1_;
  const float lambda2_;
};

}  // namespace

Result<std::unique_ptr<Updater>> make_sgd(const UpdaterSpec& spec) {
  const auto numbers = TRY(read_numbers(spec, {{"learning_rate", 0.01f, NumberRange::kPositive},
                                               {"lambda1", 0.0f, NumberRange::kNotNegative},
                                               {"lambda2", 0.0f, NumberRange::kNotNegative}}));
  return std::make_unique<Sgd>(numbers[0], numbers[1], numbers[2]);
}

}  // namespace pscloud

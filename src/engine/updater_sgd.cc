#include "engine/updater_builtin.h"

namespace pscloud {
namespace {

// w -= learning_rate * g.
class Sgd final : public RunUpdater {
 public:
  explicit Sgd(float learning_rate) : learning_rate_(learning_rate) {}

  void update_rows(float* __restrict values, float*, const float* __restrict pushed, size_t rows,
                   size_t width) const override {
    const float learning_rate = learning_rate_;
    for (size_t i = 0; i < rows * width; ++i) values[i] -= learning_rate * pushed[i];
  }

 private:
  const float learning_rate_;
};

}  // namespace

Result<std::unique_ptr<Updater>> make_sgd(const UpdaterSpec& spec) {
  const auto numbers = TRY(read_numbers(spec, {{"learning_rate", 0.01f, NumberRange::kPositive}}));
  return std::make_unique<Sgd>(numbers[0]);
}

}  // namespace pscloud

#include "engine/table/updater_builtin.h"
#include "engine/table/vector_clones.h"

namespace pscloud {
namespace {

PSCLOUD_VECTOR_CLONES
void descend(float* __restrict values, const float* __restrict pushed, size_t count, float learning_rate) {
  for (size_t i = 0; i < count; ++i) values[i] -= learning_rate * pushed[i];
}

// w -= learning_rate * g.
class Sgd final : public RunUpdater {
 public:
  explicit Sgd(float learning_rate) : learning_rate_(learning_rate) {}

  void update_rows(float* values, float*, const float* pushed, size_t rows, size_t width) const override {
    descend(values, pushed, rows * width, learning_rate_);
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

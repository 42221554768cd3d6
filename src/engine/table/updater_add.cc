#include <cstring>

#include "base/vector_clones.h"
#include "engine/table/updater_builtin.h"

namespace pscloud {
namespace {

PSCLOUD_VECTOR_CLONES
void add(float* __restrict values, const float* __restrict pushed, size_t count) {
  for (size_t i = 0; i < count; ++i) values[i] += pushed[i];
}

class Add final : public RunUpdater {
  void update_rows(float* values, float*, const float* pushed, size_t rows, size_t width) const override {
    add(values, pushed, rows * width);
  }
};

class Assign final : public RunUpdater {
  void update_rows(float* values, float*, const float* pushed, size_t rows, size_t width) const override {
    if (rows > 0) std::memcpy(values, pushed, rows * width * sizeof(float));
  }
};

}  // namespace

Result<std::unique_ptr<Updater>> make_add(const UpdaterSpec& spec) {
  TRY(read_numbers(spec, {}));
  return std::make_unique<Add>();
}

Result<std::unique_ptr<Updater>> make_assign(const UpdaterSpec& spec) {
  TRY(read_numbers(spec, {}));
  return std::make_unique<Assign>();
}

}  // namespace pscloud

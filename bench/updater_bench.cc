// The loop of each updater, and the checks that precede it, on floats that the second cache holds.
#include <benchmark/benchmark.h>

#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "engine/table/table_check.h"
#include "pscloud/updater.h"

namespace pscloud {
namespace {

constexpr size_t kFloats = 16 << 10;

std::vector<float> some_floats(size_t count) {
  Random random(3);
  std::vector<float> floats(count);
  for (float& value : floats) value = random.normal(0, 1);
  return floats;
}

void count_floats(benchmark::State& state, size_t floats) {
  const auto done = static_cast<double>(floats) * static_cast<double>(state.iterations());
  state.counters["time/float"] = benchmark::Counter(done, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void update_rows(benchmark::State& state, const char* name) {
  const auto updater = UpdaterCatalog().make({name, {}});
  CHECK(updater.has_value());
  const auto width = static_cast<size_t>(state.range(0));
  const size_t rows = kFloats / width;
  auto values = some_floats(kFloats);
  const auto pushed = some_floats(kFloats);
  std::vector<float> states(rows * (*updater)->state_width(width), 0.5f);
  for (auto _ : state) {
    (*updater)->update_rows(values.data(), states.data(), pushed.data(), rows, width);
    benchmark::ClobberMemory();
  }
  count_floats(state, kFloats);
}
BENCHMARK_CAPTURE(update_rows, add, "add")->Name("UpdaterAdd")->Arg(1);
BENCHMARK_CAPTURE(update_rows, assign, "assign")->Name("UpdaterAssign")->Arg(1);
BENCHMARK_CAPTURE(update_rows, sgd, "sgd")->Name("UpdaterSgd")->Arg(1);
BENCHMARK_CAPTURE(update_rows, adagrad, "adagrad")->Name("UpdaterAdagrad")->Arg(1);
BENCHMARK_CAPTURE(update_rows, adam, "adam")->Name("UpdaterAdam")->Arg(1)->Arg(64);
BENCHMARK_CAPTURE(update_rows, ftrl, "ftrl")->Name("UpdaterFtrl")->Arg(1);

// Of a chunk of 1 MB.
void not_finite(benchmark::State& state) {
  const auto values = some_floats(256 << 10);
  for (auto _ : state) benchmark::DoNotOptimize(first_not_finite(values));
  count_floats(state, values.size());
}
BENCHMARK(not_finite)->Name("CheckFinite");

void keys_increase(benchmark::State& state) {
  std::vector<Key> keys(100'000);
  std::iota(keys.begin(), keys.end(), 5);
  for (auto _ : state) CHECK(check_keys_increase(keys));
  count_floats(state, keys.size());
}
BENCHMARK(keys_increase)->Name("CheckKeysIncrease");

}  // namespace
}  // namespace pscloud

// Tables alone, one core: what a request costs its owner between the filters.
// A key or row costs cache lines, so the lists are larger than the caches and drawn anew for each call.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "base/random.h"
#include "engine/table/huge_memory.h"
#include "engine/table/table_store.h"

namespace pscloud {
namespace {

constexpr size_t kListKeys = 100'000;

std::unique_ptr<TableStore> make_table(const TableSpec& spec) {
  auto table = TableStore::make(spec, UpdaterCatalog(), 0, spec.rows, uint64_t{16} << 30);
  CHECK(table.has_value(), "{}", table.error().message);
  return *std::move(table);
}

// Row i of a table has this key: spread over all 64-bit numbers.
Key key_of(uint64_t i) { return mix_key(i * 2 + 1); }

struct Filled {
  std::unique_ptr<TableStore> table;
  std::vector<std::vector<Key>> lists;
  std::vector<RowMemo> memos;
  std::vector<float> values, out;
  size_t next = 0;
  int64_t draw = 0;
};

// How often row i is asked for.
enum Draw : int64_t { kUniform, kZipf };

// By the inverse of the distribution's integral: row i about as often as 1/(i+1).
uint64_t draw_row(Random& random, Draw draw, uint64_t rows) {
  if (draw == kUniform) return random.below(rows);
  const auto row = static_cast<uint64_t>(std::exp(random.uniform() * std::log(static_cast<double>(rows))));
  return std::min(row, rows - 1);
}

// An FTRL table of `width` and some sorted lists of keys it holds. Kept until another is asked for: to fill one takes
// seconds, so benchmarks of one table stand next to each other.
Filled& filled(uint32_t width, uint64_t rows, Draw draw) {
  static std::unique_ptr<Filled> kept;
  if (!kept || kept->table->spec().width != width || kept->table->rows() != rows) {
    kept.reset();
    kept = std::make_unique<Filled>();
    TableSpec spec;
    spec.name = "bench";
    spec.width = width;
    spec.updater.name = "ftrl";
    kept->table = make_table(spec);
    kept->values.assign(kListKeys * width, 0.5f);
    kept->out.resize(kListKeys * width);
    for (uint64_t begin = 0; begin < rows; begin += kListKeys) {
      std::vector<Key> keys(kListKeys);
      for (size_t i = 0; i < kListKeys; ++i) keys[i] = key_of(begin + i);
      std::ranges::sort(keys);
      CHECK(kept->table->push(keys, kept->values).has_value());
    }
  }
  if (!kept->lists.empty() && kept->draw == draw) return *kept;
  kept->draw = draw;
  kept->lists.clear();
  Random random(7);
  for (int list = 0; list < 16; ++list) {
    std::vector<Key> keys;
    while (keys.size() < kListKeys) {
      for (size_t i = keys.size(); i < kListKeys; ++i) keys.push_back(key_of(draw_row(random, draw, rows)));
      std::ranges::sort(keys);
      keys.erase(std::ranges::unique(keys).begin(), keys.end());
    }
    kept->lists.push_back(std::move(keys));
  }
  kept->memos.assign(kept->lists.size(), {});
  for (size_t i = 0; i < kept->lists.size(); ++i)
    CHECK(kept->table->pull(kept->lists[i], kept->out, &kept->memos[i]).has_value());
  return *kept;
}

void count_keys(benchmark::State& state, const Filled& filled) {
  const auto keys = static_cast<double>(kListKeys * static_cast<size_t>(state.iterations()));
  state.counters["time/key"] = benchmark::Counter(keys, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["keys/s"] = benchmark::Counter(keys, benchmark::Counter::kIsRate);
  state.counters["B/key"] = static_cast<double>(filled.table->bytes()) / static_cast<double>(filled.table->rows());
}

// Arguments: width, rows, how keys are drawn, 1 if the lists are known from before.
template <class Use>
void sparse(benchmark::State& state, Use use) {
  Filled& f = filled(static_cast<uint32_t>(state.range(0)), static_cast<uint64_t>(state.range(1)),
                     static_cast<Draw>(state.range(2)));
  const bool with_memo = state.range(3) != 0;
  for (auto _ : state) {
    const size_t list = f.next++ % f.lists.size();
    CHECK(use(f, f.lists[list], with_memo ? &f.memos[list] : nullptr));
  }
  count_keys(state, f);
}

void push(benchmark::State& state) {
  sparse(state, [](Filled& f, auto& keys, RowMemo* memo) { return f.table->push(keys, f.values, memo); });
}
void pull(benchmark::State& state) {
  sparse(state, [](Filled& f, auto& keys, RowMemo* memo) { return f.table->pull(keys, f.out, memo); });
}
void push_pull(benchmark::State& state) {
  sparse(state, [](Filled& f, auto& keys, RowMemo* memo) { return f.table->push_pull(keys, f.values, f.out, memo); });
}

void with_and_without_memo(benchmark::internal::Benchmark* bench, int64_t width, int64_t rows, Draw draw) {
  bench->ArgNames({"width", "rows", "zipf", "memo"});
  for (const int64_t memo : {0, 1}) bench->Args({width, rows, draw, memo});
}
void narrow(benchmark::internal::Benchmark* bench) { with_and_without_memo(bench, 1, 10'000'000, kUniform); }
void narrow_zipf(benchmark::internal::Benchmark* bench) { with_and_without_memo(bench, 1, 10'000'000, kZipf); }
void wide(benchmark::internal::Benchmark* bench) { with_and_without_memo(bench, 16, 1'000'000, kUniform); }
void wider(benchmark::internal::Benchmark* bench) { with_and_without_memo(bench, 64, 400'000, kUniform); }
BENCHMARK(push_pull)->Name("SparsePushPull")->Apply(narrow);
BENCHMARK(push)->Name("SparsePush")->Apply(narrow);
BENCHMARK(pull)->Name("SparsePull")->Apply(narrow);
BENCHMARK(push_pull)->Name("SparsePushPull")->Apply(narrow_zipf);
BENCHMARK(push_pull)->Name("SparsePushPull")->Apply(wide);
BENCHMARK(pull)->Name("SparsePull")->Apply(wide);
BENCHMARK(push_pull)->Name("SparsePushPull")->Apply(wider);
BENCHMARK(pull)->Name("SparsePull")->Apply(wider);

// Pushes of new keys only: with growth, and the longest of them.
void fill(benchmark::State& state) {
  TableSpec spec;
  spec.name = "bench";
  spec.updater.name = "ftrl";
  const auto rows = static_cast<uint64_t>(state.range(0));
  const std::vector<float> values(kListKeys, 0.5f);
  std::vector<Key> keys(kListKeys);
  double longest_ms = 0;
  for (auto _ : state) {
    double seconds = 0;
    const auto table = make_table(spec);
    for (uint64_t begin = 0; begin < rows; begin += kListKeys) {
      for (size_t i = 0; i < kListKeys; ++i) keys[i] = key_of(begin + i);
      std::ranges::sort(keys);
      const auto start = std::chrono::steady_clock::now();
      CHECK(table->push(keys, values).has_value());
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      seconds += took.count();
      longest_ms = std::max(longest_ms, took.count() * 1e3);
    }
    state.SetIterationTime(seconds);
    state.counters["B/key"] = static_cast<double>(table->bytes()) / static_cast<double>(rows);
  }
  const auto keys_done = static_cast<double>(rows) * static_cast<double>(state.iterations());
  state.counters["keys/s"] = benchmark::Counter(keys_done, benchmark::Counter::kIsRate);
  state.counters["longest_ms"] = longest_ms;
}
BENCHMARK(fill)->Name("SparseFill")->ArgName("rows")->Arg(4'000'000)->Iterations(1)->UseManualTime();

// 1 MB chunks of a table of 100 MB, one after the other: each comes from memory.
constexpr size_t kDenseFloats = 25 << 20;
constexpr size_t kChunkFloats = (1 << 20) / sizeof(float);

template <class Use>
void dense(benchmark::State& state, Use use) {
  std::vector<float> given(kChunkFloats, 0.5f), out(kChunkFloats);
  size_t chunk = 0;
  for (auto _ : state) {
    use(chunk * kChunkFloats, given, out);
    chunk = (chunk + 1) % (kDenseFloats / kChunkFloats);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kChunkFloats * sizeof(float)));
}

std::unique_ptr<TableStore> dense_table() {
  TableSpec spec;
  spec.name = "bench";
  spec.kind = TableKind::kDense;
  spec.rows = kDenseFloats;
  auto table = make_table(spec);
  for (size_t first = 0; first < kDenseFloats; first += kChunkFloats)
    CHECK(table->push_range(first, std::vector<float>(kChunkFloats, 1.0f)).has_value());
  return table;
}

// What the table is compared with: the same memory and a plain loop.
void plain_add(benchmark::State& state) {
  const HugeMemory memory(kDenseFloats * sizeof(float));
  auto* table = reinterpret_cast<float*>(memory.data());
  std::fill_n(table, kDenseFloats, 1.0f);
  dense(state, [&](size_t first, auto& given, auto&) {
    float* values = table + first;
    for (size_t i = 0; i < given.size(); ++i) values[i] += given[i];
    benchmark::ClobberMemory();
  });
}
void dense_push(benchmark::State& state) {
  const auto table = dense_table();
  dense(state, [&](size_t first, auto& given, auto&) { CHECK(table->push_range(first, given)); });
}
void dense_pull(benchmark::State& state) {
  const auto table = dense_table();
  dense(state, [&](size_t first, auto&, auto& out) { CHECK(table->pull_range(first, out)); });
}
void dense_push_pull(benchmark::State& state) {
  const auto table = dense_table();
  dense(state, [&](size_t first, auto& given, auto& out) { CHECK(table->push_pull_range(first, given, out)); });
}
BENCHMARK(plain_add)->Name("PlainAdd");
BENCHMARK(dense_push)->Name("DensePush");
BENCHMARK(dense_pull)->Name("DensePull");
BENCHMARK(dense_push_pull)->Name("DensePushPull");

}  // namespace
}  // namespace pscloud

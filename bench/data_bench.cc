// From text to gradients, the steps of a worker one by one, on one core.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "base/check.h"
#include "data/click_log.h"
#include "data/localizer.h"
#include "data/parser.h"
#include "data/text_writer.h"

namespace pscloud {
namespace {

constexpr size_t kLines = 4000;

const RowBlock& clicks() {
  static const RowBlock block = [] {
    RowBlock made;
    ClickLog log({});
    for (size_t i = 0; i < kLines; ++i) log.next(made);
    return made;
  }();
  return block;
}

// Items are examples.
void parse_text(benchmark::State& state, ExampleFormat format) {
  std::string text;
  CHECK(append_text(format, slice_of(clicks(), 0, kLines), 0, text).has_value());
  const size_t size = text.size();
  text.append(kScanPadding, '\n');
  const auto parser = make_parser(format, true);
  RowBlock block;
  for (auto _ : state) {
    block.clear();
    BadLines bad;
    parser->parse(std::string_view(text).substr(0, size), block, bad);
    CHECK(block.rows() == kLines && bad.count == 0);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(size));
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kLines));
}
BENCHMARK_CAPTURE(parse_text, libsvm, ExampleFormat::kLibsvm)->Name("Parse/libsvm");
BENCHMARK_CAPTURE(parse_text, vw, ExampleFormat::kVw)->Name("Parse/vw");
BENCHMARK_CAPTURE(parse_text, criteo, ExampleFormat::kCriteo)->Name("Parse/criteo");

// The keys of a minibatch of so many examples. Items are features.
void localize(benchmark::State& state) {
  const auto rows = static_cast<size_t>(state.range(0));
  Localizer localizer;
  size_t first = 0;
  for (auto _ : state) {
    localizer.localize(slice_of(clicks(), first, rows).keys);
    first = first + 2 * rows > kLines ? 0 : first + rows;
    benchmark::DoNotOptimize(localizer.columns().data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(rows * 39));
}
BENCHMARK(localize)->Name("Localize")->Arg(1000)->Arg(4000);

}  // namespace
}  // namespace pscloud

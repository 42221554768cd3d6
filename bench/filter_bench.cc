// Each filter alone, there and back: 100000 keys and as many floats of a gradient, nine tenths of them zero for the
// filters that live from that.
#include <benchmark/benchmark.h>

#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "engine/filter/filter.h"

namespace pscloud {
namespace {

constexpr size_t kRows = 100'000;

struct Request {
  std::vector<Key> keys;
  Floats values;
};

Request some_request(bool mostly_zero) {
  Random random(5);
  Request request;
  std::vector<float> values;
  Key key = 0;
  for (size_t i = 0; i < kRows; ++i) {
    request.keys.push_back(key += 1 + random.below(1000));
    values.push_back(mostly_zero && random.chance(0.9) ? 0.0f : random.normal(0, 1));
  }
  request.values = Floats(values);
  return request;
}

void count_rows(benchmark::State& state, size_t wire_bytes) {
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kRows * (sizeof(Key) + sizeof(float))));
  state.counters["wire_B/row"] = static_cast<double>(wire_bytes) / static_cast<double>(kRows);
}

void encode(benchmark::State& state, std::vector<FilterSpec> filters, bool mostly_zero) {
  const Request request = some_request(mostly_zero);
  Random random(7);
  KeyCache cache(64 << 20);
  size_t bytes = 0;
  for (auto _ : state) {
    const auto payload = encode_payload(filters, request.keys, request.values, kRows, {&random, &cache});
    CHECK(payload.has_value());
    bytes = payload->size();
  }
  count_rows(state, bytes);
}

void decode(benchmark::State& state, std::vector<FilterSpec> filters, bool mostly_zero) {
  const Request request = some_request(mostly_zero);
  Random random(7);
  KeyCache sender(64 << 20), receiver(64 << 20);
  Frame frame;
  const auto encode_one = [&] {
    encode_payload(filters, request.keys, request.values, kRows, {&random, &sender})->put_in(frame);
  };
  const auto decode_one = [&] { CHECK(decode_payload(frame, kRows, 1, true, true, {&random, &receiver}).has_value()); };
  encode_one();
  decode_one();
  encode_one();  // now the receiver has the list
  for (auto _ : state) decode_one();
  count_rows(state, frame.payload_size());
}

#define FILTER_BENCHMARK(name, mostly_zero, ...)                                                                   \
  BENCHMARK_CAPTURE(encode, name, std::vector<FilterSpec>{__VA_ARGS__}, mostly_zero)->Name("FilterEncode/" #name); \
  BENCHMARK_CAPTURE(decode, name, std::vector<FilterSpec>{__VA_ARGS__}, mostly_zero)->Name("FilterDecode/" #name)

FILTER_BENCHMARK(none, false, );
FILTER_BENCHMARK(key_caching, false, FilterSpec{FilterKind::kKeyCaching});
FILTER_BENCHMARK(lz4, true, FilterSpec{FilterKind::kLz4});
FILTER_BENCHMARK(zstd, true, FilterSpec{FilterKind::kZstd});
FILTER_BENCHMARK(fixed_point, false, FilterSpec{FilterKind::kFixedPoint, 2});
FILTER_BENCHMARK(float16, false, FilterSpec{FilterKind::kFloat16});
FILTER_BENCHMARK(bfloat16, false, FilterSpec{FilterKind::kBfloat16});
FILTER_BENCHMARK(drop_zeros, true, FilterSpec{FilterKind::kDropZeros});
FILTER_BENCHMARK(noise, false, FilterSpec{FilterKind::kNoise, 2, 0, 0.01f});

}  // namespace
}  // namespace pscloud

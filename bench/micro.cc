// Costs of single steps on the way of a request, one core. Run one: build/release/bench/micro --benchmark_filter=Frame
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/random.h"
#include "net/frame.h"

namespace pscloud {
namespace {

Frame push_frame(size_t payload_bytes) {
  Buffer payload(payload_bytes);
  Random random(1);
  for (std::byte& byte : payload.span()) byte = static_cast<std::byte>(random.next());
  Frame frame;
  frame.header = {.type = FrameType::kPush, .session = 7, .seq = 8, .ack = 6, .table = 3, .count = 100, .clock = 2};
  frame.payload = std::make_shared<const Buffer>(std::move(payload));
  return frame;
}

// Throughput is that of payload bytes; 0 payload shows the cost of the header alone.
void encode_frame(benchmark::State& state) {
  const Frame frame = push_frame(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(encode_header(frame, true));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(encode_frame)->Name("FrameEncode")->Arg(0)->Arg(4 << 10)->Arg(1 << 20);

void decode_frame(benchmark::State& state) {
  const Frame frame = push_frame(state.range(0));
  const HeaderBytes bytes = encode_header(frame, true);
  for (auto _ : state) {
    const Result<FrameHeader> header = decode_header(bytes, kPayloadBytesMax);
    if (!header || !check_payload(*header, frame.bytes())) state.SkipWithError("a good frame was refused");
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(decode_frame)->Name("FrameDecode")->Arg(0)->Arg(4 << 10)->Arg(1 << 20);

void mix_keys(benchmark::State& state) {
  std::vector<uint64_t> keys(4096);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  for (auto _ : state) {
    for (uint64_t& key : keys) key = mix_key(key);
    benchmark::DoNotOptimize(keys.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(keys.size()));
}
BENCHMARK(mix_keys)->Name("MixKey");

}  // namespace
}  // namespace pscloud

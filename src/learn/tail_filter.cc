#include "learn/tail_filter.h"

#include <algorithm>

namespace pscloud {
namespace {

std::vector<float> occurrences(size_t keys, std::span<const uint32_t> columns) {
  std::vector<float> counts(keys);
  for (const uint32_t column : columns) counts[column] += 1;
  return counts;
}

}  // namespace

Result<TailFilter> TailFilter::make(Worker& worker, const std::string& name, const TailSettings& settings,
                                    uint64_t cells, const Consistency& consistency) {
  // Each server has some.
  const uint64_t rows = std::max(static_cast<uint64_t>(worker.parts()), cells);
  const TableSpec spec{
      .name = name, .kind = TableKind::kSketch, .rows = rows, .hashes = settings.hashes, .consistency = consistency};
  return TailFilter(worker, TRY(worker.create_table(spec)), settings.frequency);
}

Result<> TailFilter::add(std::span<const Key> keys, std::span<const uint32_t> columns) {
  if (keys.empty()) return {};
  return worker_->push(counts_, keys, occurrences(keys.size(), columns)).wait();
}

Result<std::vector<uint8_t>> TailFilter::is_common(std::span<const Key> keys) {
  std::vector<float> counts(keys.size());
  if (!keys.empty()) TRY(worker_->pull(counts_, keys, counts).wait());
  return above(counts);
}

Result<std::vector<uint8_t>> TailFilter::add_and_ask(std::span<const Key> keys, std::span<const uint32_t> columns) {
  std::vector<float> counts = occurrences(keys.size(), columns);
  if (!keys.empty()) TRY(worker_->push_pull(counts_, keys, counts, counts).wait());
  return above(counts);
}

std::vector<uint8_t> TailFilter::above(std::span<const float> counts) const {
  std::vector<uint8_t> common(counts.size());
  std::ranges::transform(counts, common.begin(), [&](float count) { return count > static_cast<float>(frequency_); });
  return common;
}

}  // namespace pscloud

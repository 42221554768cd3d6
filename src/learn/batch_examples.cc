#include "learn/batch_examples.h"

#include <ranges>

namespace pscloud {
namespace {

template <class Range>
void append_to(auto& all, const Range& more) {
  all.insert(all.end(), std::ranges::begin(more), std::ranges::end(more));
}

// Rows whose features stand behind the `before` that there are. Values and groups of some may be left out.
void append_rows(RowBlock& block, size_t before, const RowSlice& rows, size_t features) {
  if (block.values.empty() && !rows.values.empty()) block.values.assign(before, 1);
  append_to(block.values, rows.values);
  if (!block.values.empty() && rows.values.empty()) block.values.resize(before + features, 1);
  if (block.groups.empty() && !rows.groups.empty()) block.groups.assign(before, 0);
  append_to(block.groups, rows.groups);
  if (!block.groups.empty()) block.groups.resize(before + features, 0);
  append_to(block.labels, rows.labels);
  for (const size_t end : rows.ends) block.ends.push_back(before + end);
}

}  // namespace

void BatchExamples::append(const NumberedRows& block) {
  append_rows(rows, numbers.size(), block.rows(), block.columns().size());
  const auto first = static_cast<uint32_t>(keys.size());
  append_to(keys, block.keys());
  for (const uint32_t column : block.columns()) numbers.push_back(first + column);
}

void BatchExamples::append(const BatchExamples& part) {
  append_to(parts, part.parts);
  append_rows(rows, numbers.size(), slice_of(part.rows, 0, part.rows.rows()), part.numbers.size());
  const auto first = static_cast<uint32_t>(keys.size());
  append_to(keys, part.keys);
  for (const uint32_t number : part.numbers) numbers.push_back(first + number);
}

}  // namespace pscloud

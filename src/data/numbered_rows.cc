#include "data/numbered_rows.h"

#include <algorithm>
#include <cstring>

namespace pscloud {

struct NumberedRows::Head {
  uint32_t rows = 0;
  uint32_t features = 0;
  uint32_t keys = 0;
  uint32_t flags = 0;
};

namespace {

constexpr uint32_t kRowsHaveValues = 1;
constexpr uint32_t kRowsHaveGroups = 2;

// Each array begins where the one before it ends; those of larger numbers come first, so that all are aligned.
template <class T>
std::span<const T> view_of(const std::byte* memory, size_t& at, size_t count) {
  const std::span<const T> view(reinterpret_cast<const T*>(memory + at), count);
  at += view.size_bytes();
  return view;
}

template <class T>
void fill(std::span<const T> view, std::span<const T> values) {
  if (!values.empty()) std::memcpy(const_cast<T*>(view.data()), values.data(), values.size_bytes());
}

uint64_t bytes_needed(uint64_t rows, uint64_t features, uint64_t keys, uint32_t flags) {
  return 16 + keys * sizeof(Key) + rows * (sizeof(size_t) + sizeof(float)) + features * sizeof(uint32_t) +
         ((flags & kRowsHaveValues) != 0 ? features * sizeof(float) : 0) +
         ((flags & kRowsHaveGroups) != 0 ? features * sizeof(uint16_t) : 0);
}

}  // namespace

size_t NumberedRows::set_views(const Head& head) {
  size_t at = sizeof(Head);
  const std::byte* const memory = memory_.data();
  keys_ = view_of<Key>(memory, at, head.keys);
  rows_ = {};
  rows_.ends = view_of<size_t>(memory, at, head.rows);
  rows_.labels = view_of<float>(memory, at, head.rows);
  columns_ = view_of<uint32_t>(memory, at, head.features);
  if ((head.flags & kRowsHaveValues) != 0) rows_.values = view_of<float>(memory, at, head.features);
  if ((head.flags & kRowsHaveGroups) != 0) rows_.groups = view_of<uint16_t>(memory, at, head.features);
  return at;
}

void NumberedRows::assign(const RowSlice& rows, std::span<const Key> keys, std::span<const uint32_t> columns) {
  const Head head{.rows = static_cast<uint32_t>(rows.rows()),
                  .features = static_cast<uint32_t>(columns.size()),
                  .keys = static_cast<uint32_t>(keys.size()),
                  .flags = (rows.values.empty() ? 0 : kRowsHaveValues) | (rows.groups.empty() ? 0 : kRowsHaveGroups)};
  size_ = bytes_needed(head.rows, head.features, head.keys, head.flags);
  if (memory_.size() < size_) memory_.resize(size_);
  std::memcpy(memory_.data(), &head, sizeof head);
  set_views(head);
  fill(keys_, keys);
  for (size_t i = 0; i < rows.rows(); ++i) const_cast<size_t&>(rows_.ends[i]) = rows.ends[i] - rows.first;
  fill(rows_.labels, rows.labels);
  fill(columns_, columns);
  fill(rows_.values, rows.values);
  fill(rows_.groups, rows.groups);
}

Result<> NumberedRows::decode(size_t size) {
  Head head;
  static_assert(sizeof head == 16);
  if (size < sizeof head) return corrupt("rows of {} bytes", size);
  std::memcpy(&head, memory_.data(), sizeof head);
  if (head.flags > (kRowsHaveValues | kRowsHaveGroups) ||
      size != bytes_needed(head.rows, head.features, head.keys, head.flags)) {
    return corrupt("rows in {} bytes that cannot be", size);
  }
  size_ = set_views(head);
  const bool ends_right =
      std::ranges::is_sorted(rows_.ends) && (rows_.ends.empty() ? 0 : rows_.ends.back()) == columns_.size();
  const bool keys_right = std::ranges::adjacent_find(keys_, std::ranges::greater_equal()) == keys_.end();
  uint32_t last = 0;
  for (const uint32_t column : columns_) last = std::max(last, column);
  if (!ends_right || !keys_right || (!columns_.empty() && last >= keys_.size()))
    return corrupt("rows that make no sense");
  return {};
}

}  // namespace pscloud

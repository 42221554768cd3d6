#include "engine/table_sparse.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "engine/table_check.h"

namespace pscloud {
namespace {

constexpr uint32_t kNone = SparseIndex::kNone;

// Wider rows fill the updater's loop on their own: bringing them together would only copy.
constexpr size_t kGatherWidthMax = 8;

}  // namespace

SparseTable::SparseTable(const TableSpec& spec, std::unique_ptr<Updater> updater, uint64_t bytes_max)
    : spec_(spec),
      place_("table " + spec.name),
      updater_(std::move(updater)),
      bytes_max_(bytes_max),
      state_width_(updater_->state_width(spec.width)),
      rows_(spec.width + state_width_) {
  if (spec_.width > kGatherWidthMax) return;
  group_values_.resize(kGroup * spec_.width);
  group_states_.resize(kGroup * state_width_);
}

Result<> SparseTable::push(std::span<const Key> keys, std::span<const float> values) {
  TRY(check(keys, values).at(place_));
  Plan plan = TRY(plan_push(keys).at(place_));
  if (plan.new_rows > 0) make_rows(keys, plan);
  const auto group_at = [&](size_t begin) {
    begin = std::min(begin, plan.rows.size());
    return std::span<const uint32_t>(plan.rows).subspan(begin, std::min(kGroup, plan.rows.size() - begin));
  };
  for (size_t begin = 0; begin < keys.size(); begin += kGroup) {
    for (const uint32_t row : group_at(begin + kGroup)) __builtin_prefetch(rows_.address(row));
    update_group(group_at(begin), values.data() + begin * spec_.width);
  }
  return {};
}

Result<> SparseTable::pull(std::span<const Key> keys, std::span<float> out) const {
  TRY(check_float_count(keys.size(), spec_.width, out.size()).at(place_));
  TRY(check_keys_increase(keys).at(place_));
  uint32_t rows[kGroup];
  for (size_t begin = 0; begin < keys.size(); begin += kGroup) {
    const auto group = keys.subspan(begin, std::min(kGroup, keys.size() - begin));
    find_group(group, rows);
    for (size_t i = 0; i < group.size(); ++i) {
      const auto row = out.subspan((begin + i) * spec_.width, spec_.width);
      if (rows[i] == kNone) {
        fill_initial(spec_.initial, group[i], row);
      } else {
        std::memcpy(row.data(), rows_.floats(rows[i]), row.size_bytes());
      }
    }
  }
  return {};
}

Result<> SparseTable::push_range(uint64_t, std::span<const float>) { return not_dense(); }
Result<> SparseTable::pull_range(uint64_t, std::span<float>) const { return not_dense(); }
Result<> SparseTable::prepare_push_range(uint64_t, std::span<const float>) { return not_dense(); }

Result<> SparseTable::prepare_push(std::span<const Key> keys, std::span<const float> values) {
  TRY(check(keys, values).at(place_));
  Plan plan = TRY(plan_push(keys).at(place_));
  if (plan.new_rows > 0) make_rows(keys, plan);
  return {};
}

Result<> SparseTable::check(std::span<const Key> keys, std::span<const float> values) const {
  TRY(check_float_count(keys.size(), spec_.width, values.size()));
  TRY(check_keys_increase(keys));
  const size_t bad = first_not_finite(values);
  if (bad < values.size())
    return invalid("the push to key {} has {} in column {}; nothing was changed", keys[bad / spec_.width], values[bad],
                   bad % spec_.width);
  return {};
}

Result<SparseTable::Plan> SparseTable::plan_push(std::span<const Key> keys) const {
  Plan plan;
  plan.rows.resize(keys.size());
  for (size_t begin = 0; begin < keys.size(); begin += kGroup)
    find_group(keys.subspan(begin, std::min(kGroup, keys.size() - begin)), plan.rows.data() + begin);
  for (size_t i = 0; i < keys.size(); ++i) {
    if (plan.rows[i] != kNone) continue;
    ++plan.more[SparseIndex::segment_of(mix_key(keys[i]))];
    ++plan.new_rows;
  }
  if (plan.new_rows == 0) return plan;

  if (plan.new_rows > kNone - rows_.size())
    return invalid("one server owner holds at most {} rows of a table; use more servers", kNone);
  const uint64_t bytes_after = bytes() - index_.bytes() - rows_.bytes() + index_.bytes_after(plan.more) +
                               rows_.bytes_after(rows_.size() + plan.new_rows);
  if (bytes_after > bytes_max_)
    return invalid(
        "{} new rows would need {} bytes, its limit on this server owner is {} and it holds {} rows in {}; raise "
        "bytes_max of the table (or memory_max of the servers), use more servers or admit fewer keys; nothing was "
        "changed",
        plan.new_rows, bytes_after, bytes_max_, rows_.size(), bytes());
  return plan;
}

void SparseTable::find_group(std::span<const Key> keys, uint32_t* rows) const {
  uint64_t mixed[kGroup];
  for (size_t i = 0; i < keys.size(); ++i) {
    mixed[i] = mix_key(keys[i]);
    __builtin_prefetch(index_.home(mixed[i]));
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    rows[i] = index_.guess(mixed[i]);
    if (rows[i] != kNone) __builtin_prefetch(rows_.address(rows[i]));
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    if (rows[i] == kNone || rows_.key(rows[i]) != keys[i]) rows[i] = index_.find(mixed[i], rows_);
  }
}

void SparseTable::make_rows(std::span<const Key> keys, Plan& plan) {
  index_.reserve(plan.more, rows_);
  rows_.reserve(rows_.size() + plan.new_rows);
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i + kGroup < keys.size()) __builtin_prefetch(index_.home(mix_key(keys[i + kGroup])));
    if (plan.rows[i] != kNone) continue;
    const uint32_t row = rows_.append(keys[i]);
    float* floats = rows_.floats(row);
    fill_initial(spec_.initial, keys[i], {floats, spec_.width});
    std::fill_n(floats + spec_.width, state_width_, 0.0f);
    index_.insert(mix_key(keys[i]), row);
    plan.rows[i] = row;
  }
}

void SparseTable::update_group(std::span<const uint32_t> rows, const float* pushed) {
  const size_t width = spec_.width;
  if (width > kGatherWidthMax) {
    for (size_t i = 0; i < rows.size(); ++i) {
      float* floats = rows_.floats(rows[i]);
      updater_->update_rows(floats, floats + width, pushed + i * width, 1, width);
    }
    return;
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const float* floats = rows_.floats(rows[i]);
    std::copy_n(floats, width, group_values_.data() + i * width);
    std::copy_n(floats + width, state_width_, group_states_.data() + i * state_width_);
  }
  updater_->update_rows(group_values_.data(), group_states_.data(), pushed, rows.size(), width);
  for (size_t i = 0; i < rows.size(); ++i) {
    float* floats = rows_.floats(rows[i]);
    std::copy_n(group_values_.data() + i * width, width, floats);
    std::copy_n(group_states_.data() + i * state_width_, state_width_, floats + width);
  }
}

Error SparseTable::not_dense() const {
  return invalid("{}: a sparse table has no ranges of rows; name the keys", place_);
}

}  // namespace pscloud

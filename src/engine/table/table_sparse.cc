#include "engine/table/table_sparse.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"
#include "engine/table/prefetch.h"
#include "engine/table/row_finder.h"
#include "engine/table/scan_rows.h"
#include "engine/table/table_check.h"

namespace pscloud {
namespace {

constexpr uint32_t kNone = SparseIndex::kNone;

}  // namespace

SparseTable::SparseTable(const TableSpec& spec, std::unique_ptr<Updater> updater, uint64_t bytes_max)
    : spec_(spec),
      place_("table " + spec.name),
      updater_(std::move(updater)),
      bytes_max_(bytes_max),
      state_width_(updater_->state_width(spec.width)),
      rows_(spec.width + state_width_),
      update_(*updater_, spec.width, state_width_) {}

Result<> SparseTable::push(std::span<const Key> keys, std::span<const float> values, RowMemo* memo) {
  TRY(check_keys(keys, values.size(), memo).at(place_));
  TRY(check_values(keys, values).at(place_));
  return push_checked(keys, values, nullptr, memo);
}

Result<> SparseTable::push_pull(std::span<const Key> keys, std::span<const float> values, std::span<float> out,
                                RowMemo* memo) {
  TRY(check_float_count(keys.size(), spec_.width, out.size()).at(place_));
  TRY(check_keys(keys, values.size(), memo).at(place_));
  TRY(check_values(keys, values).at(place_));
  return push_checked(keys, values, out.data(), memo);
}

Result<> SparseTable::push_checked(std::span<const Key> keys, std::span<const float> values, float* out,
                                   RowMemo* memo) {
  const size_t width = spec_.width;
  const size_t row_bytes = (width + state_width_) * sizeof(float);
  const auto out_at = [&](size_t i) { return out == nullptr ? nullptr : out + i * width; };
  const bool first_use = memo == nullptr || memo->rows.empty();
  if (first_use && must_fit(keys.size())) {
    // One pass: rows are changed while the next are looked up, and those that are missing are made afterwards. Only if
    // these cannot fail.
    if (memo != nullptr) memo->rows.resize(keys.size());
    Missing missing;
    const auto apply_one = [&](uint32_t row, size_t i) {
      update_.apply(rows_, {&row, 1}, {}, values.data() + i * width, out_at(i));
    };
    RowFinder finder(index_, rows_, keys, row_bytes);
    while (const auto* group = finder.next()) {
      const size_t begin = group->begin;
      const auto rows = group->found();
      if (memo != nullptr) std::ranges::copy(rows, memo->rows.data() + begin);
      if (std::ranges::find(rows, kNone) == rows.end()) {
        update_.apply(rows_, finder, rows, values.data() + begin * width, out_at(begin));
        continue;
      }
      for (size_t i = 0; i < rows.size(); ++i) {
        if (rows[i] == kNone) {
          missing.push_back(static_cast<uint32_t>(begin + i));
        } else {
          apply_one(rows[i], begin + i);
        }
      }
    }
    if (!missing.empty()) {
      const auto first_made = static_cast<uint32_t>(rows_.size());
      TRY(make_rows(keys, missing, memo != nullptr ? memo->rows.data() : nullptr));
      for (uint32_t i = 0; i < missing.size(); ++i) apply_one(first_made + i, missing[i]);
    }
    if (memo != nullptr) memo->complete = true;
    return {};
  }

  RowMemo once;
  RowMemo& known = memo != nullptr ? *memo : once;
  if (!known.complete) TRY(find_or_make(keys, known));
  const std::span<const uint32_t> rows(known.rows);
  const auto group_at = [&](size_t begin) {
    begin = std::min(begin, rows.size());
    return rows.subspan(begin, std::min(kGroup, rows.size() - begin));
  };
  for (const uint32_t row : group_at(0)) ask_for(rows_.floats(row), row_bytes);
  for (size_t begin = 0; begin < rows.size(); begin += kGroup) {
    update_.apply(rows_, group_at(begin), group_at(begin + kGroup), values.data() + begin * width, out_at(begin));
  }
  return {};
}

Result<> SparseTable::pull(std::span<const Key> keys, std::span<float> out, RowMemo* memo) const {
  TRY(check_keys(keys, out.size(), memo).at(place_));
  const size_t row_bytes = spec_.width * sizeof(float);
  const auto read = [&](uint32_t row, size_t i) {
    float* to = out.data() + i * spec_.width;
    if (row == kNone) {
      fill_initial(spec_.initial, keys[i], {to, spec_.width});
    } else if (row_bytes == sizeof(float)) {
      *to = *rows_.floats(row);
    } else {
      std::memcpy(to, rows_.floats(row), row_bytes);
    }
  };
  if (memo == nullptr || memo->rows.empty()) {
    if (memo != nullptr) memo->rows.resize(keys.size());
    RowFinder finder(index_, rows_, keys, row_bytes);
    while (const auto* group = finder.next()) {
      for (size_t i = 0; i < group->size; ++i) read(group->rows[i], group->begin + i);
      if (memo != nullptr) std::ranges::copy(group->found(), memo->rows.data() + group->begin);
    }
    if (memo != nullptr) memo->complete = std::ranges::find(memo->rows, kNone) == memo->rows.end();
    return {};
  }
  if (!memo->complete) {
    Missing missing;
    look_up_missing(keys, memo->rows, missing);
    memo->complete = missing.empty();
  }
  const std::span<const uint32_t> rows(memo->rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint32_t ahead = rows[std::min(i + kGroup, rows.size() - 1)];
    if (ahead != kNone) ask_for(rows_.floats(ahead), row_bytes);
    read(rows[i], i);
  }
  return {};
}

Result<> SparseTable::push_range(uint64_t, std::span<const float>) { return not_dense(); }
Result<> SparseTable::pull_range(uint64_t, std::span<float>) const { return not_dense(); }
Result<> SparseTable::push_pull_range(uint64_t, std::span<const float>, std::span<float>) { return not_dense(); }
Result<std::span<const float>> SparseTable::view_range(uint64_t, uint64_t) const { return not_dense(); }
Result<> SparseTable::prepare_push_range(uint64_t, std::span<const float>) { return not_dense(); }
Result<PublishedRows> SparseTable::publish(const Lender&) { return not_dense(); }

ScannedRows SparseTable::scan(uint64_t first, uint64_t rows_max, ScanKind kind) const {
  return scan_rows(first, std::min(rows_max, rows() - std::min(first, rows())), kind, spec_.width, [&](uint64_t row) {
    const auto number = static_cast<uint32_t>(row);
    const float* const floats = rows_.floats(number);
    return RowParts{rows_.key(number), floats, {floats + spec_.width, state_width_}};
  });
}

Result<> SparseTable::set(std::span<const Key> keys, std::span<const float> floats, ScanKind kind) {
  const size_t each = this->floats(kind);
  TRY(check_rows_to_set(keys, floats, each).at(place_));
  RowMemo memo;
  TRY(find_or_make(keys, memo));
  for (size_t i = 0; i < keys.size(); ++i) {
    float* const row = rows_.floats(memo.rows[i]);
    std::copy_n(floats.data() + i * each, each, row);
    if (kind != ScanKind::kState) updater_->state_of({row, spec_.width}, {row + spec_.width, state_width_});
  }
  return {};
}

Result<> SparseTable::prepare_push(std::span<const Key> keys, std::span<const float> values, RowMemo* memo) {
  TRY(check_keys(keys, values.size(), memo).at(place_));
  TRY(check_values(keys, values).at(place_));
  RowMemo once;
  RowMemo& known = memo != nullptr ? *memo : once;
  if (known.complete) return {};
  return find_or_make(keys, known);
}

Result<> SparseTable::check_keys(std::span<const Key> keys, size_t floats, RowMemo* memo) const {
  TRY(check_float_count(keys.size(), spec_.width, floats));
  CHECK(memo == nullptr || memo->rows.empty() || memo->rows.size() == keys.size(), "a memo of another list");
  if (memo != nullptr && memo->checked) return {};
  TRY(check_keys_increase(keys));
  if (memo != nullptr) memo->checked = true;
  return {};
}

Result<> SparseTable::check_values(std::span<const Key> keys, std::span<const float> values) const {
  const size_t bad = first_not_finite(values);
  if (bad == values.size()) return {};
  return invalid("the push to key {} has {} in column {}; nothing was changed", keys[bad / spec_.width], values[bad],
                 bad % spec_.width);
}

// Whichever keys they are.
bool SparseTable::must_fit(uint64_t new_rows) const {
  return new_rows <= SparseIndex::kRowsMax - rows_.size() &&
         own_bytes() + index_.bytes_with(new_rows) + rows_.bytes_after(rows_.size() + new_rows) <= bytes_max_;
}

// Where `rows` has kNone: looks again; `missing` are those that still have none.
void SparseTable::look_up_missing(std::span<const Key> keys, std::span<uint32_t> rows, Missing& missing) const {
  std::vector<Key> sought;
  Missing places;
  for (uint32_t i = 0; i < rows.size(); ++i) {
    if (rows[i] != kNone) continue;
    places.push_back(i);
    sought.push_back(keys[i]);
  }
  RowFinder finder(index_, rows_, sought, sizeof(float));
  while (const auto* group = finder.next()) {
    for (size_t i = 0; i < group->size; ++i) {
      const uint32_t place = places[group->begin + i];
      rows[place] = group->rows[i];
      if (rows[place] == kNone) missing.push_back(place);
    }
  }
}

Result<> SparseTable::find_or_make(std::span<const Key> keys, RowMemo& memo) {
  if (memo.rows.empty()) memo.rows.assign(keys.size(), kNone);
  Missing missing;
  look_up_missing(keys, memo.rows, missing);
  if (!missing.empty()) TRY(make_rows(keys, missing, memo.rows.data()));
  memo.complete = true;
  return {};
}

// Rows for the keys at `missing`, in that order; their numbers go to `rows` if it is not null. kInvalid if they do not
// fit.
Result<> SparseTable::make_rows(std::span<const Key> keys, const Missing& missing, uint32_t* rows) {
  if (missing.size() > SparseIndex::kRowsMax - rows_.size())
    return invalid("{}: one server owner holds at most {} rows of a table; use more servers", place_,
                   SparseIndex::kRowsMax);
  const uint64_t rows_after = rows_.size() + missing.size();
  const uint64_t bytes_after = own_bytes() + index_.bytes_with(missing.size()) + rows_.bytes_after(rows_after);
  if (bytes_after > bytes_max_)
    return invalid(
        "{}: {} new rows would need {} bytes, its limit on this server owner is {} and it holds {} rows in {}; raise "
        "bytes_max of the table (or memory_max of the servers), use more servers or admit fewer keys; nothing was "
        "changed",
        place_, missing.size(), bytes_after, bytes_max_, rows_.size(), bytes());

  rows_.reserve(rows_after);
  index_.grow_by(missing.size(), rows_);
  for (size_t i = 0; i < missing.size(); ++i) {
    if (i + kGroup < missing.size()) __builtin_prefetch(index_.home(mix_key(keys[missing[i + kGroup]])));
    const Key key = keys[missing[i]];
    const uint32_t row = rows_.append(key);
    fill_initial(spec_.initial, key, {rows_.floats(row), spec_.width});
    index_.insert(mix_key(key), row);
    if (rows != nullptr) rows[missing[i]] = row;
  }
  return {};
}

Error SparseTable::not_dense() const {
  return invalid("{}: a sparse table has no ranges of rows; name the keys", place_);
}

}  // namespace pscloud

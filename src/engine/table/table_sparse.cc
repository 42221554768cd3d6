#include "engine/table/table_sparse.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"
#include "engine/table/table_check.h"

namespace pscloud {
namespace {

constexpr uint32_t kNone = SparseIndex::kNone;
constexpr size_t kLine = 64;
constexpr size_t kAheadBytesMax = 4 * kLine;

// Asks for memory that will be used soon. Inlined, or g++ 12 takes it to do nothing and drops the call.
// Of long pieces the first lines only: by then the processor has seen where it goes.
[[gnu::always_inline]] inline void ask_for(const void* memory, size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(memory);
  for (size_t at = 0; at < std::min(bytes, kAheadBytesMax); at += kLine) __builtin_prefetch(begin + at);
  __builtin_prefetch(begin + bytes - 1);  // often on a line of its own: rows are not aligned
}

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
      update_.apply(rows_, {&row, 1}, values.data() + i * width, out_at(i));
    };
    look_up(keys, row_bytes, [&](const Group& group) {
      const std::span<const uint32_t> rows(group.rows, group.size);
      if (memo != nullptr) std::ranges::copy(rows, memo->rows.begin() + static_cast<ptrdiff_t>(group.begin));
      if (std::ranges::find(rows, kNone) == rows.end())
        return update_.apply(rows_, rows, values.data() + group.begin * width, out_at(group.begin));
      for (size_t i = 0; i < rows.size(); ++i) {
        if (rows[i] == kNone) {
          missing.push_back(static_cast<uint32_t>(group.begin + i));
        } else {
          apply_one(rows[i], group.begin + i);
        }
      }
    });
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
    for (const uint32_t row : group_at(begin + kGroup)) ask_for(rows_.floats(row), row_bytes);
    update_.apply(rows_, group_at(begin), values.data() + begin * width, out_at(begin));
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
    look_up(keys, row_bytes, [&](const Group& group) {
      for (size_t i = 0; i < group.size; ++i) read(group.rows[i], group.begin + i);
      if (memo != nullptr) std::copy_n(group.rows, group.size, memo->rows.data() + group.begin);
    });
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
Result<> SparseTable::prepare_push_range(uint64_t, std::span<const float>) { return not_dense(); }

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
         own_bytes() + index_.bytes_most(new_rows) + rows_.bytes_after(rows_.size() + new_rows) <= bytes_max_;
}

// Three groups at a time, each at another step: its lines of the index are asked for, its rows are asked for, its keys
// are compared. All steps in one loop, so that there is always something to do while memory answers.
template <class Use>
void SparseTable::look_up(std::span<const Key> keys, size_t row_bytes, Use use) const {
  const bool beside = rows_.key_is_beside();
  Group groups[3];
  const size_t count = (keys.size() + kGroup - 1) / kGroup;
  for (size_t step = 0; step < count + 2; ++step) {
    Group& first = groups[step % 3];
    Group& second = groups[(step + 2) % 3];
    Group& third = groups[(step + 1) % 3];
    first.begin = step * kGroup;
    first.size = step < count ? std::min(kGroup, keys.size() - first.begin) : 0;
    size_t further[kGroup];
    size_t further_size = 0;
    for (size_t i = 0; i < kGroup; ++i) {
      if (i < first.size) {
        first.mixed[i] = mix_key(keys[first.begin + i]);
        __builtin_prefetch(index_.home(first.mixed[i]));
      }
      if (i < second.size) {
        const uint32_t row = second.rows[i] = index_.guess(second.mixed[i]);
        if (row < SparseIndex::kRowsMax) {
          ask_for(rows_.key_address(row), beside ? sizeof(Key) + row_bytes : sizeof(Key));
          if (!beside) ask_for(rows_.floats(row), row_bytes);
        } else if (row == SparseIndex::kFurther) {
          __builtin_prefetch(index_.after_home(second.mixed[i]));
          further[further_size++] = i;
        }
      }
      if (i < third.size) {
        uint32_t& row = third.rows[i];
        if (row != kNone && rows_.key(row) != keys[third.begin + i]) row = index_.find(third.mixed[i], rows_);
      }
    }
    for (size_t i = 0; i < further_size; ++i) {
      const uint32_t row = second.rows[further[i]] = index_.guess_further(second.mixed[further[i]]);
      if (row != kNone) ask_for(rows_.key_address(row), sizeof(Key));
    }
    if (third.size > 0) use(std::as_const(third));
  }
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
  look_up(sought, sizeof(float), [&](const Group& group) {
    for (size_t i = 0; i < group.size; ++i) {
      const uint32_t place = places[group.begin + i];
      rows[place] = group.rows[i];
      if (group.rows[i] == kNone) missing.push_back(place);
    }
  });
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
  std::vector<uint64_t> mixed(missing.size());
  for (size_t i = 0; i < missing.size(); ++i) mixed[i] = mix_key(keys[missing[i]]);
  const SparseIndex::Growth growth = index_.plan(mixed, rows_);
  const uint64_t rows_after = rows_.size() + missing.size();
  const uint64_t bytes_after = own_bytes() + growth.bytes + rows_.bytes_after(rows_after);
  if (bytes_after > bytes_max_)
    return invalid(
        "{}: {} new rows would need {} bytes, its limit on this server owner is {} and it holds {} rows in {}; raise "
        "bytes_max of the table (or memory_max of the servers), use more servers or admit fewer keys; nothing was "
        "changed",
        place_, missing.size(), bytes_after, bytes_max_, rows_.size(), bytes());

  index_.grow(growth, rows_);
  rows_.reserve(rows_after);
  for (size_t i = 0; i < missing.size(); ++i) {
    if (i + kGroup < missing.size()) __builtin_prefetch(index_.home(mixed[i + kGroup]));
    const Key key = keys[missing[i]];
    const uint32_t row = rows_.append(key);
    fill_initial(spec_.initial, key, {rows_.floats(row), spec_.width});
    index_.insert(mixed[i], row);
    if (rows != nullptr) rows[missing[i]] = row;
  }
  return {};
}

Error SparseTable::not_dense() const {
  return invalid("{}: a sparse table has no ranges of rows; name the keys", place_);
}

}  // namespace pscloud

#include "engine/server/owned_table.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/check.h"
#include "engine/key_range.h"

namespace pscloud {
namespace {

struct PushedRows {
  std::vector<Key> keys;
  std::vector<float> values;
};

PushedRows pushed_rows(const Operation& operation) {
  PushedRows rows{{operation.keys.begin(), operation.keys.end()}, {operation.values.begin(), operation.values.end()}};
  for (uint32_t i = 0; operation.range && i < operation.count; ++i) rows.keys.push_back(operation.first + i);
  return rows;
}

// Finite, as all that is pushed.
float finite_sum(float a, float b) {
  constexpr float kMax = std::numeric_limits<float>::max();
  return std::clamp(a + b, -kMax, kMax);
}

// Rows of either, by key; of both, added.
PushedRows sum_of(const PushedRows& a, const PushedRows& b, size_t width) {
  PushedRows sum;
  sum.keys.reserve(a.keys.size() + b.keys.size());
  sum.values.reserve(a.values.size() + b.values.size());
  size_t i = 0;
  size_t j = 0;
  while (i < a.keys.size() || j < b.keys.size()) {
    const bool of_a = j == b.keys.size() || (i < a.keys.size() && a.keys[i] <= b.keys[j]);
    const bool of_b = i == a.keys.size() || (j < b.keys.size() && b.keys[j] <= a.keys[i]);
    sum.keys.push_back(of_a ? a.keys[i] : b.keys[j]);
    for (size_t k = 0; k < width; ++k) {
      const float from_a = of_a ? a.values[i * width + k] : 0;
      const float from_b = of_b ? b.values[j * width + k] : 0;
      sum.values.push_back(finite_sum(from_a, from_b));
    }
    i += of_a ? 1 : 0;
    j += of_b ? 1 : 0;
  }
  return sum;
}

}  // namespace

Result<std::unique_ptr<OwnedTable>> OwnedTable::make(const TableSpec& spec, const UpdaterCatalog& updaters,
                                                     uint32_t owner, uint32_t owners, uint64_t bytes_max) {
  TRY(validate(spec));
  if (spec.bytes_max > 0) bytes_max = std::min(bytes_max, spec.bytes_max);
  const auto [first, last] = dense_range(spec.rows, owner, owners);
  auto store = TRY(TableStore::make(spec, updaters, first, last - first, bytes_max));
  return std::unique_ptr<OwnedTable>(new OwnedTable(std::move(store), bytes_max));
}

void OwnedTable::limit_bytes(uint64_t bytes_max) {
  bytes_max_ = spec().bytes_max > 0 ? std::min(bytes_max, spec().bytes_max) : bytes_max;
}

Result<> OwnedTable::push(Operation& operation) {
  if (spec().consistency.holds_clock()) return push_later(operation);
  return grow_by(0, [&] { return push_now(operation); });
}

Result<> OwnedTable::pull(const Operation& operation, std::span<float> out) const {
  return operation.range ? store_->pull_range(operation.first, out)
                         : store_->pull(operation.keys, out, operation.keys.memo());
}

Result<> OwnedTable::push_pull(Operation& operation, std::span<float> out) {
  if (spec().consistency.holds_clock()) {
    TRY(pull(operation, out));  // first: the push keeps the keys
    return push_later(operation);
  }
  return grow_by(0, [&] {
    return operation.range ? store_->push_pull_range(operation.first, operation.values, out)
                           : store_->push_pull(operation.keys, operation.values, out, operation.keys.memo());
  });
}

Result<> OwnedTable::set(std::span<const Key> keys, std::span<const float> floats, ScanKind kind) {
  return grow_by(pending_bytes_, [&] { return store_->set(keys, floats, kind); });
}

Result<SharedBuffer> OwnedTable::borrow(uint64_t first, uint32_t count) const {
  return share(bytes_of(TRY(store_->view_range(first, count))), nullptr, Buffer::kBorrowed);
}

Result<SharedBuffer> OwnedTable::pull_in_place(const Operation& operation, const Lender& lend) {
  const PublishedRows published = TRY(store_->publish(lend));
  store_bytes_ = store_->bytes();
  if (operation.count == 0) return published.versions;
  return share(bytes_of(TRY(store_->view_range(operation.first, operation.count))), published.keeper);
}

Result<> OwnedTable::push_now(const Operation& operation) {
  return operation.range ? store_->push_range(operation.first, operation.values)
                         : store_->push(operation.keys, operation.values, operation.keys.memo());
}

Result<> OwnedTable::push_later(Operation& operation) {
  if (bytes() + operation.bytes > bytes_max_) {
    return invalid(
        "table '{}' holds {} bytes of rows and {} bytes of pushes that wait for the end of the clock, and may hold {}: "
        "call clock() more often or raise bytes_max",
        spec().name, store_bytes_, pending_bytes_, bytes_max_);
  }
  // Makes the rows now, so that nothing can fail when the push has been acknowledged.
  TRY(grow_by(pending_bytes_ + operation.bytes, [&] {
    return operation.range ? store_->prepare_push_range(operation.first, operation.values)
                           : store_->prepare_push(operation.keys, operation.values, operation.keys.memo());
  }));
  operation.values.own();
  pending_bytes_ += operation.bytes;
  pending_.push_back(std::move(operation));
  return {};
}

// What waits for the end of the clock takes from the same bytes.
template <class Write>
Result<> OwnedTable::grow_by(uint64_t waiting_bytes, Write write) {
  store_->limit_bytes(bytes_max_ - std::min(bytes_max_, waiting_bytes));
  const uint64_t rows_before = rows();
  TRY(write());
  if (rows() != rows_before) store_bytes_ = store_->bytes();
  return {};
}

void OwnedTable::settle(uint32_t minimum) {
  const auto due = [&](const Operation& operation) { return operation.clock < minimum; };
  std::vector<Operation> ready;
  for (Operation& operation : pending_) {
    if (due(operation)) ready.push_back(std::move(operation));
  }
  std::erase_if(pending_, due);
  // Not the order of arrival: the sums must come out the same in every run.
  std::ranges::sort(ready, {}, [](const Operation& o) { return std::tuple(o.clock, o.rank, o.session, o.seq); });
  for (const Operation& operation : ready) pending_bytes_ -= operation.bytes;
  if (spec().consistency.kind == Consistency::Kind::kSum) {
    for (auto first = ready.begin(); first != ready.end();) {
      const auto last = std::find_if(first, ready.end(), [&](const Operation& o) { return o.clock != first->clock; });
      push_sum({first, last});
      first = last;
    }
    return;
  }
  for (const Operation& operation : ready) apply(operation);
}

void OwnedTable::apply(const Operation& operation) {
  const Result<> applied = push_now(operation);
  CHECK(applied, "an acknowledged push to '{}' failed: {}", spec().name, applied.error().message);
}

// Of the pushes of one clock.
void OwnedTable::push_sum(std::span<const Operation> operations) {
  if (operations.size() == 1) return apply(operations.front());
  PushedRows sum;
  for (const Operation& operation : operations) sum = sum_of(sum, pushed_rows(operation), spec().width);
  Operation summed{.type = FrameType::kPush, .keys = std::move(sum.keys), .values = Floats(sum.values)};
  apply(summed);
}

uint32_t OwnedTable::next_settlement() const {
  uint32_t next = UINT32_MAX;
  for (const Operation& operation : pending_) next = std::min(next, operation.clock + 1);
  return next;
}

}  // namespace pscloud

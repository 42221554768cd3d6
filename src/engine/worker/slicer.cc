#include "engine/worker/slicer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/key_range.h"
#include "engine/message.h"
#include "engine/worker/streaming_copy.h"

namespace pscloud {

namespace {

constexpr size_t kPartBytes = size_t{1} << 20;

size_t rows_per_part(size_t row_bytes) { return std::max<size_t>(1, kPartBytes / row_bytes); }

uint32_t owner_of_row(uint64_t row, uint64_t rows, uint32_t owners) {
  // dense_range cuts at floor(rows*i/owners): the owner is near row*owners/rows.
  auto owner = static_cast<uint32_t>(static_cast<unsigned __int128>(row) * owners / rows);
  while (row >= dense_range(rows, owner, owners).second) ++owner;
  while (row < dense_range(rows, owner, owners).first) --owner;
  return owner;
}

Part new_part(FrameType type, TableId table, const std::shared_ptr<const TableSpec>& spec) {
  Part part;
  part.type = type;
  part.table = table;
  part.spec = spec;
  return part;
}

void cached_copy(std::byte* to, const std::byte* from, size_t size) { std::memcpy(to, from, size); }

// Rows of the answer that lie together in `out`, a part of `all_bytes`.
void set_place(Slice& slice, std::span<float> out, size_t all_bytes) {
  constexpr size_t kCachesBytes = size_t{32} << 20;  // an array as large as this will not be found in them later
  slice.part.out = out;
  slice.sink = [out, copy = all_bytes < kCachesBytes ? cached_copy : streaming_copy](const Part::Answer& answer) {
    // Often it has been put there as it arrived.
    if (!out.empty() && answer.values.data() != out.data()) {
      copy(std::as_writable_bytes(out).data(), std::as_bytes(answer.values.span()).data(), out.size_bytes());
    }
  };
}

// One of each owner in turn, so that all of them are at work. Those of one owner stay in order.
std::vector<Slice> in_turn(std::vector<Slice> slices, uint32_t owners) {
  if (owners == 1) return slices;
  std::vector<std::vector<Slice*>> by_owner(owners);
  for (Slice& slice : slices) by_owner[slice.owner].push_back(&slice);
  std::vector<Slice> result;
  result.reserve(slices.size());
  for (size_t round = 0; result.size() < slices.size(); ++round) {
    for (const auto& mine : by_owner) {
      if (round < mine.size()) result.push_back(std::move(*mine[round]));
    }
  }
  return result;
}

}  // namespace

void Slice::load(Buffer buffer) {
  const size_t row_bytes = part.spec->width * sizeof(float);
  std::byte* to = buffer.data();
  if (positions.empty()) {
    std::memcpy(to, source.data(), source.size_bytes());
  } else {
    for (const uint32_t at : positions) {
      std::memcpy(to, source.data() + size_t{at} * part.spec->width, row_bytes);
      to += row_bytes;
    }
  }
  part.values = Floats(std::make_shared<const Buffer>(std::move(buffer)));
}

std::vector<Slice> slice_keys(FrameType type, TableId table, const std::shared_ptr<const TableSpec>& spec,
                              uint32_t owners, std::span<const Key> keys, std::span<const float> values,
                              std::span<float> out) {
  const size_t width = spec->width;
  const size_t most = rows_per_part(sizeof(Key) + width * sizeof(float));
  const bool dense = spec->kind == TableKind::kDense;
  std::vector<Slice> slices;

  if (owners == 1 || dense) {
    // What one owner holds is a run of the sorted list.
    for (size_t begin = 0; begin < keys.size();) {
      const uint32_t owner = owners == 1 ? 0 : owner_of_row(keys[begin], spec->rows, owners);
      size_t end = std::min(keys.size(), begin + most);
      if (owners > 1) {
        const uint64_t last = dense_range(spec->rows, owner, owners).second;
        end = std::lower_bound(keys.begin() + begin, keys.begin() + end, last) - keys.begin();
      }
      Slice slice;
      slice.owner = owner;
      slice.part = new_part(type, table, spec);
      slice.part.count = static_cast<uint32_t>(end - begin);
      slice.part.keys.assign(keys.begin() + begin, keys.begin() + end);
      if (!values.empty()) slice.source = values.subspan(begin * width, (end - begin) * width);
      if (!out.empty()) set_place(slice, out.subspan(begin * width, (end - begin) * width), out.size_bytes());
      slices.push_back(std::move(slice));
      begin = end;
    }
    return in_turn(std::move(slices), owners);
  }

  std::vector<std::vector<uint32_t>> positions(owners);
  for (auto& list : positions) list.reserve(keys.size() / owners + 16);
  for (size_t i = 0; i < keys.size(); ++i) positions[owner_of(keys[i], owners)].push_back(static_cast<uint32_t>(i));
  for (uint32_t owner = 0; owner < owners; ++owner) {
    const std::span<const uint32_t> mine = positions[owner];
    for (size_t begin = 0; begin < mine.size(); begin += most) {
      const auto part_positions = mine.subspan(begin, std::min(most, mine.size() - begin));
      Slice slice;
      slice.owner = owner;
      slice.part = new_part(type, table, spec);
      slice.part.count = static_cast<uint32_t>(part_positions.size());
      slice.part.keys.reserve(part_positions.size());
      for (const uint32_t at : part_positions) slice.part.keys.push_back(keys[at]);
      slice.source = values;
      slice.positions.assign(part_positions.begin(), part_positions.end());
      if (!out.empty()) {
        slice.sink = [out, width, rows = slice.positions](const Part::Answer& answer) {
          for (size_t i = 0; i < rows.size(); ++i) {
            std::memcpy(&out[size_t{rows[i]} * width], answer.values.data() + i * width, width * sizeof(float));
          }
        };
      }
      slices.push_back(std::move(slice));
    }
  }
  return in_turn(std::move(slices), owners);
}

std::vector<Slice> slice_rows_to_set(TableId table, const TableSpec& spec, uint32_t owners, std::span<const Key> keys,
                                     std::span<const float> floats, ScanKind kind) {
  const bool by_number = spec.kind != TableKind::kSparse;  // of rows, or of a sketch's cells
  const size_t each = keys.empty() ? 0 : floats.size() / keys.size();
  const size_t most = rows_per_part(sizeof(Key) + each * sizeof(float));
  std::vector<Slice> slices;
  std::vector<SetRowsMessage> gathered(owners);
  const auto add_slice = [&](uint32_t owner) {
    Slice& slice = slices.emplace_back();
    slice.owner = owner;
    slice.part.type = FrameType::kSetRows;
    slice.part.table = table;
    gathered[owner].kind = kind;
    slice.part.raw = encode(std::exchange(gathered[owner], {}));
  };
  for (size_t i = 0; i < keys.size(); ++i) {
    const uint32_t owner = by_number ? owner_of_row(keys[i], spec.rows, owners) : owner_of(keys[i], owners);
    SetRowsMessage& message = gathered[owner];
    message.keys.push_back(keys[i]);
    const auto row = floats.subspan(i * each, each);
    message.floats.insert(message.floats.end(), row.begin(), row.end());
    if (message.keys.size() == most) add_slice(owner);
  }
  for (uint32_t owner = 0; owner < owners; ++owner) {
    if (!gathered[owner].keys.empty()) add_slice(owner);
  }
  return in_turn(std::move(slices), owners);
}

std::vector<Slice> slice_rows(FrameType type, TableId table, const std::shared_ptr<const TableSpec>& spec,
                              uint32_t owners, uint64_t first, uint64_t rows, std::span<const float> values,
                              std::span<float> out) {
  const size_t width = spec->width;
  const size_t most = rows_per_part(width * sizeof(float));
  std::vector<Slice> slices;
  for (uint64_t begin = first; begin < first + rows;) {
    const uint32_t owner = owner_of_row(begin, spec->rows, owners);
    const uint64_t end = std::min({first + rows, begin + most, dense_range(spec->rows, owner, owners).second});
    Slice slice;
    slice.owner = owner;
    slice.part = new_part(type, table, spec);
    slice.part.range = true;
    slice.part.first = begin;
    slice.part.count = static_cast<uint32_t>(end - begin);
    const size_t offset = (begin - first) * width;
    const size_t size = (end - begin) * width;
    if (!values.empty()) slice.source = values.subspan(offset, size);
    if (!out.empty()) set_place(slice, out.subspan(offset, size), out.size_bytes());
    slices.push_back(std::move(slice));
    begin = end;
  }
  return in_turn(std::move(slices), owners);
}

}  // namespace pscloud

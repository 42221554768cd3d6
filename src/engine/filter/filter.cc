#include "engine/filter/filter.h"

#include <limits>

#include "base/check.h"
#include "engine/filter/filter_order.h"
#include "engine/filter/filter_step.h"

namespace pscloud {
namespace {

constexpr size_t kAppliedMax = 8;

// A filter as the head of a payload lists it.
struct Applied {
  const FilterStep* step;
  Bytes args;
};

Result<std::vector<Applied>> read_applied(ByteReader& reader) {
  const auto count = reader.get<uint8_t>();
  if (count > kAppliedMax) return corrupt("a payload with {} filters, at most {} are allowed", count, kAppliedMax);
  std::vector<Applied> applied;
  std::vector<FilterKind> kinds;
  for (size_t i = 0; i < count; ++i) {
    kinds.push_back(reader.get<FilterKind>());
    const auto args_bytes = reader.get<uint16_t>();
    applied.push_back({find_filter_step(kinds.back()), reader.get_raw(args_bytes)});
  }
  if (!reader.ok()) return corrupt("a payload's list of filters is cut short");
  if (auto order = check_filter_order(kinds); !order) return corrupt("a payload's filters: {}", order.error().message);
  return applied;
}

// What a payload that nobody filtered would have. kCorrupt above kPlainBytesMax.
Result<SectionBytes> plain_sizes(size_t rows, size_t width, bool with_keys, bool with_values) {
  if (!with_keys && !with_values) return SectionBytes{};
  const auto too_large = [&] {
    return corrupt("a payload of {} rows of width {} is above the limit of {} bytes", rows, width, kPlainBytesMax);
  };
  if (rows > kPlainBytesMax || width > kPlainBytesMax) return too_large();  // so that the products fit in 64 bits
  const SectionBytes plain{with_keys ? rows * sizeof(Key) : 0, with_values ? rows * width * sizeof(float) : 0};
  if (plain.keys + plain.values > kPlainBytesMax) return too_large();
  return plain;
}

template <class T>
std::vector<T> copy_to_vector(Bytes bytes) {
  std::vector<T> result(bytes.size() / sizeof(T));
  if (!result.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

Result<SharedBuffer> apply_all(std::span<const FilterSpec> filters, PayloadDraft& draft, FilterContext context) {
  ByteWriter list;
  uint8_t applied = 0;
  for (const FilterSpec& filter : filters) {
    const FilterStep* step = find_filter_step(filter.kind);
    CHECK(step, "filter {}", static_cast<int>(filter.kind));
    ByteWriter args;
    if (!TRY(step->apply(filter, draft, args, context))) continue;
    CHECK(args.size() <= std::numeric_limits<uint16_t>::max());
    list.put(filter.kind);
    list.put(static_cast<uint16_t>(args.size()));
    list.put_raw(args.bytes());
    ++applied;
  }

  ByteWriter head;
  head.put(applied);
  head.put_raw(list.bytes());
  head.put(static_cast<uint32_t>(draft.keys.bytes().size()));
  const Bytes parts[] = {head.bytes(), draft.keys.bytes(), draft.values.bytes()};
  Buffer payload(parts[0].size() + parts[1].size() + parts[2].size());
  std::byte* out = payload.data();
  for (const Bytes part : parts) {
    if (part.empty()) continue;
    std::memcpy(out, part.data(), part.size());
    out += part.size();
  }
  return std::make_shared<const Buffer>(std::move(payload));
}

}  // namespace

Result<SharedBuffer> encode_payload(std::span<const FilterSpec> filters, std::span<const Key> keys,
                                    std::span<const float> values, size_t rows, FilterContext context) {
  CHECK(keys.empty() || keys.size() == rows, "{} keys for {} rows", keys.size(), rows);
  CHECK(values.empty() || (rows > 0 && values.size() % rows == 0), "{} values for {} rows", values.size(), rows);
  if (keys.size_bytes() + values.size_bytes() > kPlainBytesMax)
    return invalid("{} keys and {} values in one request are above the limit of {} bytes", keys.size(), values.size(),
                   kPlainBytesMax);
  PayloadDraft draft{Section(bytes_of(keys)), Section(bytes_of(values)), rows, {}, {}};
  auto payload = apply_all(filters, draft, context);
  // The list will not travel, so the peer will not have it.
  if (!payload && draft.new_signature) context.key_cache->forget(*draft.new_signature);
  return payload;
}

Result<DecodedPayload> decode_payload(Bytes bytes, size_t rows, size_t width, bool with_keys, bool with_values,
                                      FilterContext context) {
  ByteReader reader(bytes);
  const std::vector<Applied> applied = TRY(read_applied(reader));
  const auto key_bytes = reader.get<uint32_t>();
  const Bytes key_section = reader.get_raw(key_bytes);
  const Bytes value_section = reader.get_raw(reader.left());
  if (!reader.ok()) return corrupt("a payload's keys are cut short");

  // Forward: the sizes between the filters, each checked before anything is allocated.
  std::vector<SectionBytes> sizes{TRY(plain_sizes(rows, width, with_keys, with_values))};
  for (const Applied& filter : applied) sizes.push_back(TRY(filter.step->sizes_after(filter.args, sizes.back(), rows)));
  if (key_section.size() != sizes.back().keys || value_section.size() != sizes.back().values)
    return corrupt("a payload of {} bytes of keys and {} of values; {} rows of width {} should have {} and {}",
                   key_section.size(), value_section.size(), rows, width, sizes.back().keys, sizes.back().values);

  // Backward: undo.
  PayloadDraft draft{Section(key_section), Section(value_section), rows, {}, {}};
  for (size_t i = applied.size(); i-- > 0;) {
    TRY(applied[i].step->undo(applied[i].args, sizes[i], draft, context));
    CHECK(draft.values.bytes().size() == sizes[i].values, "filter {} of a payload", i);
    CHECK(draft.keys.bytes().size() == sizes[i].keys || draft.unknown_signature, "filter {} of a payload", i);
  }

  DecodedPayload decoded;
  decoded.keys = draft.known_keys.empty() ? KeyList(copy_to_vector<Key>(draft.keys.bytes())) : draft.known_keys;
  decoded.values = copy_to_vector<float>(draft.values.bytes());
  decoded.keys_unknown = draft.unknown_signature.has_value();
  decoded.signature = draft.unknown_signature.value_or(Hash128{});
  return decoded;
}

}  // namespace pscloud

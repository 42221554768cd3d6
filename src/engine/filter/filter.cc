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

Result<EncodedPayload> apply_all(std::span<const FilterSpec> filters, PayloadDraft& draft, const Floats& values,
                                 FilterContext context) {
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

  EncodedPayload encoded;
  encoded.values = draft.values.replaced() ? draft.values.take() : values.share();
  encoded.plain = applied == 0 && draft.keys.bytes().empty() && !values.empty();
  if (encoded.plain) return encoded;

  ByteWriter head;
  head.put(applied);
  head.put_raw(list.bytes());
  head.put(static_cast<uint32_t>(draft.keys.bytes().size()));
  while (head.size() % 8 != 0) head.put(uint8_t{0});
  Buffer buffer(head.size() + draft.keys.bytes().size());
  std::memcpy(buffer.data(), head.bytes().data(), head.size());
  if (!draft.keys.bytes().empty()) {
    std::memcpy(buffer.data() + head.size(), draft.keys.bytes().data(), draft.keys.bytes().size());
  }
  encoded.head = std::make_shared<const Buffer>(std::move(buffer));
  return encoded;
}

// Where they are, if they can be used there.
Floats floats_of(Section& section, const SharedBuffer& frame_buffer) {
  if (section.bytes().empty()) return {};
  if (section.replaced()) return Floats(section.take());
  const auto* first = reinterpret_cast<const float*>(section.bytes().data());
  const std::span<const float> floats(first, section.bytes().size() / sizeof(float));
  if (reinterpret_cast<uintptr_t>(first) % alignof(float) == 0) return {floats, frame_buffer};
  Buffer copy = Buffer::copy_of(section.bytes());
  return Floats(std::make_shared<const Buffer>(std::move(copy)));
}

// The values of a payload that is nothing else.
Result<DecodedPayload> decode_plain(const Frame& frame, SectionBytes sizes) {
  const SharedBuffer& buffer = frame.values ? frame.values : frame.payload;
  const bool whole = buffer && buffer->size() == frame.payload_size();
  if (!whole || sizes.keys > 0 || sizes.values == 0 || sizes.values != buffer->size())
    return corrupt("a plain payload of {} bytes instead of {} of keys and {} of values", frame.payload_size(),
                   sizes.keys, sizes.values);
  DecodedPayload decoded;
  decoded.values = Floats(buffer);
  return decoded;
}

}  // namespace

Result<EncodedPayload> encode_payload(std::span<const FilterSpec> filters, std::span<const Key> keys,
                                      const Floats& values, size_t rows, FilterContext context) {
  CHECK(keys.empty() || keys.size() == rows, "{} keys for {} rows", keys.size(), rows);
  CHECK(values.empty() || (rows > 0 && values.size() % rows == 0), "{} values for {} rows", values.size(), rows);
  if (keys.size_bytes() + values.span().size_bytes() > kPlainBytesMax)
    return invalid("{} keys and {} values in one request are above the limit of {} bytes", keys.size(), values.size(),
                   kPlainBytesMax);
  PayloadDraft draft{Section(bytes_of(keys)), Section(bytes_of(values.span())), rows, {}, {}, {}};
  auto payload = apply_all(filters, draft, values, context);
  // The list will not travel, so the peer will not have it.
  if (!payload && draft.new_signature) context.key_cache->forget(*draft.new_signature);
  if (payload && draft.last_use) context.key_cache->forget(*draft.last_use);
  return payload;
}

Result<DecodedPayload> decode_payload(const Frame& frame, size_t rows, size_t width, bool with_keys, bool with_values,
                                      FilterContext context) {
  std::vector<SectionBytes> sizes{TRY(plain_sizes(rows, width, with_keys, with_values))};
  if (frame.header.flags & kFlagPlain) return decode_plain(frame, sizes.front());

  ByteReader reader(frame.bytes());
  const std::vector<Applied> applied = TRY(read_applied(reader));
  const auto key_bytes = reader.get<uint32_t>();
  // Zeros, so that keys and values are aligned for direct use.
  for (size_t at = frame.bytes().size() - reader.left(); reader.ok() && at % 8 != 0; ++at) {
    if (reader.get<uint8_t>() != 0) return corrupt("a payload's head is not filled up with zeros");
  }
  const Bytes key_section = reader.get_raw(key_bytes);
  const bool apart = frame.values != nullptr;
  const Bytes value_section = apart ? frame.value_bytes() : reader.get_raw(reader.left());
  if (!reader.ok()) return corrupt("a payload's keys are cut short");
  if (reader.left() > 0) return corrupt("a payload with {} bytes too many", reader.left());

  // Forward: the sizes between the filters, each checked before anything is allocated.
  for (const Applied& filter : applied) sizes.push_back(TRY(filter.step->sizes_after(filter.args, sizes.back(), rows)));
  if (key_section.size() != sizes.back().keys || value_section.size() != sizes.back().values)
    return corrupt("a payload of {} bytes of keys and {} of values; {} rows of width {} should have {} and {}",
                   key_section.size(), value_section.size(), rows, width, sizes.back().keys, sizes.back().values);

  // Backward: undo. Filters read what they undo more than once: not where another process could change it meanwhile.
  SharedBuffer value_buffer = apart ? frame.values : frame.payload;
  Bytes values = value_section;
  if (!applied.empty() && value_buffer && value_buffer->is_peers()) {
    value_buffer = std::make_shared<const Buffer>(Buffer::copy_of(value_section));
    values = value_buffer->span();
  }
  PayloadDraft draft{Section(key_section), Section(values), rows, {}, {}, {}};
  for (size_t i = applied.size(); i-- > 0;) {
    TRY(applied[i].step->undo(applied[i].args, sizes[i], draft, context));
    CHECK(draft.values.bytes().size() == sizes[i].values, "filter {} of a payload", i);
    CHECK(draft.keys.bytes().size() == sizes[i].keys || draft.unknown_signature, "filter {} of a payload", i);
  }

  DecodedPayload decoded;
  decoded.keys = draft.known_keys.empty() ? KeyList(copy_to_vector<Key>(draft.keys.bytes())) : draft.known_keys;
  decoded.values = floats_of(draft.values, value_buffer);
  decoded.keys_unknown = draft.unknown_signature.has_value();
  decoded.signature = draft.unknown_signature.value_or(Hash128{});
  return decoded;
}

}  // namespace pscloud

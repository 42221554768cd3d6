#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/random.h"
#include "engine/floats.h"
#include "engine/key_list.h"
#include "net/frame.h"
#include "pscloud/error.h"
#include "pscloud/table.h"
#include "pscloud/types.h"

namespace pscloud {

// The payload of a push, pull, push-pull or reply, between the floats of the user and the bytes of a frame.
// Encoded form (docs/wire-format.md): a list of the filters that were applied with what each must know to be
// undone, then the section of keys, then the section of values. So it decodes without the table's spec, and each
// step is checked against sizes that are known beforehand. Values without keys and filters need no list: "plain".

// 8*keys + 4*values of one payload: a few bytes from a peer may ask for no more memory than this.
inline constexpr uint64_t kPlainBytesMax = uint64_t{64} << 20;

// Key lists that a peer has, by signature. One per session and table at each end. Bounded; the oldest used goes.
// Both ends count the same bytes for a list, so they forget the same ones; if not, the receiver asks again.
class KeyCache {
 public:
  explicit KeyCache(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Sender: true if `signature` was remembered before; it is from now on. `keys`: how many the list has.
  bool remember(const Hash128& signature, size_t keys);
  void forget(const Hash128& signature);

  // Receiver: keeps the list itself, and room for the table's memo of it.
  void store(const Hash128& signature, KeyList keys);
  const KeyList* find(const Hash128& signature);

  uint64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    Hash128 signature;
    KeyList keys;  // empty at the sender
    uint64_t bytes = 0;
  };
  using Entries = std::list<Entry>;

  Entry* touch(const Hash128& signature);
  void insert(Entry entry);
  void erase(Entries::iterator entry);

  const uint64_t bytes_max_;
  uint64_t bytes_ = 0;
  Entries entries_;  // the last used first
  std::unordered_map<Hash128, Entries::iterator> by_signature_;
};

struct FilterContext {
  Random* random = nullptr;  // noise, rounding
  KeyCache* key_cache = nullptr;
};

// Sender. `keys` empty for a range or a reply; `values` empty for a pull; else values.size() == rows * width.
// kInvalid if a value cannot be coded (NaN, infinity, beyond float16) or the whole is above kPlainBytesMax; the key
// cache is then as before. `plain_bytes` of metrics: 8*keys + 4*values. `context.random` may be null only if no filter
// draws; without `context.key_cache` key lists travel whole.
// Values that no filter changes are not copied.
struct EncodedPayload {
  SharedBuffer head;    // all but the values; may be null
  SharedBuffer values;  // may be null
  bool plain = false;
  bool in_place = false;  // `values` are to be read where they lie

  uint64_t size() const { return (head ? head->size() : 0) + (values ? values->size() : 0); }
  // As it arrives over a network: one piece.
  SharedBuffer joined() const {
    Buffer all(size());
    if (head) std::memcpy(all.data(), head->data(), head->size());
    if (values) std::memcpy(all.data() + all.size() - values->size(), values->data(), values->size());
    return std::make_shared<const Buffer>(std::move(all));
  }
  // Makes it the payload of `frame`.
  void put_in(Frame& frame) const {
    frame.payload = head;
    frame.values = values;
    if (plain) frame.header.flags |= kFlagPlain;
    if (in_place) frame.header.flags |= kFlagInPlace;
  }
};
Result<EncodedPayload> encode_payload(std::span<const FilterSpec> filters, std::span<const Key> keys,
                                      const Floats& values, size_t rows, FilterContext context);

struct DecodedPayload {
  KeyList keys;               // shared with the cache if it has the list
  Floats values;              // most often still in the frame
  bool keys_unknown = false;  // the sender gave only a signature that we do not have: ask for the list
  Hash128 signature;          // of that list
};

// Receiver. `rows` and `width` are what the frame and the table say; `with_keys`, `with_values` what must be there.
// kCorrupt for anything else. Never allocates more than what rows and width ask for plus the size of `bytes`, and
// refuses to at all above kPlainBytesMax.
Result<DecodedPayload> decode_payload(const Frame& frame, size_t rows, size_t width, bool with_keys, bool with_values,
                                      FilterContext context);

}  // namespace pscloud

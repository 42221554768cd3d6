#include "engine/filter/filter_step.h"

namespace pscloud {
namespace {

// What a list costs the receiver: a key and its row in the table's memo; list node, hash node, bucket and shared head.
// Both ends must count the same.
uint64_t entry_bytes(size_t keys) { return keys * (sizeof(Key) + sizeof(uint32_t)) + 256; }

class KeyCachingStep final : public FilterStep {
 public:
  // Args: u8 mark; u64 low, u64 high of the list's signature.
  Result<bool> apply(const FilterSpec& spec, PayloadDraft& draft, ByteWriter& args,
                     FilterContext context) const override {
    const Bytes keys = draft.keys.bytes();
    if (keys.empty() || !context.key_cache) return false;
    // Hash the whole list, not its head: two minibatches often share their frequent keys, which sort first.
    const Hash128 signature = hash128(keys);
    const bool known = context.key_cache->remember(signature, keys.size() / sizeof(Key));
    const bool last = known && spec.once;
    if (last) draft.last_use = signature;
    args.put(last ? kKnownAndForgotten : known ? kKnown : kListFollows);
    args.put(signature.low);
    args.put(signature.high);
    if (known) {
      draft.keys.replace(Buffer());
    } else {
      draft.new_signature = signature;
    }
    return true;
  }

  Result<SectionBytes> sizes_after(Bytes args, SectionBytes before, size_t) const override {
    const Args read = TRY(read_args(args));
    if (before.keys == 0) return corrupt("key_caching in a payload that has no keys");
    return SectionBytes{read.mark == kListFollows ? before.keys : 0, before.values};
  }

  Result<> undo(Bytes args, SectionBytes before, PayloadDraft& draft, FilterContext context) const override {
    const Args read = TRY(read_args(args));
    if (read.mark == kListFollows) {
      if (hash128(draft.keys.bytes()) != read.signature) return corrupt("a key list does not have its signature");
      if (context.key_cache) {
        std::vector<Key> keys(before.keys / sizeof(Key));  // in the frame the keys need not be aligned
        std::memcpy(keys.data(), draft.keys.bytes().data(), before.keys);
        draft.known_keys = std::move(keys);
        context.key_cache->store(read.signature, draft.known_keys);
      }
      return {};
    }
    const KeyList* keys = context.key_cache ? context.key_cache->find(read.signature) : nullptr;
    if (!keys) {
      draft.unknown_signature = read.signature;
      return {};
    }
    if (keys->size() * sizeof(Key) != before.keys)
      return corrupt("a signature of {} keys in a payload of {} rows", keys->size(), draft.rows);
    draft.known_keys = *keys;
    if (read.mark == kKnownAndForgotten) context.key_cache->forget(read.signature);
    draft.keys.refer_to(bytes_of(std::span<const Key>(draft.known_keys)));
    return {};
  }

 private:
  enum Mark : uint8_t {
    kListFollows = 0,
    kKnown = 1,              // the peer has the list
    kKnownAndForgotten = 2,  // it will not need it again
  };
  struct Args {
    Mark mark;
    Hash128 signature;
  };
  static Result<Args> read_args(Bytes args) {
    ByteReader reader(args);
    const auto mark = reader.get<uint8_t>();
    const auto low = reader.get<uint64_t>();
    const auto high = reader.get<uint64_t>();
    TRY(reader.finish("the head of key_caching"));
    if (mark > kKnownAndForgotten) return corrupt("key_caching with mark {}, must be 0, 1 or 2", mark);
    return Args{static_cast<Mark>(mark), {low, high}};
  }
};

}  // namespace

const FilterStep& key_caching_step() {
  static const KeyCachingStep step;
  return step;
}

bool KeyCache::remember(const Hash128& signature, size_t keys) {
  if (touch(signature)) return true;
  insert({signature, {}, entry_bytes(keys)});
  return false;
}

void KeyCache::forget(const Hash128& signature) {
  const auto found = by_signature_.find(signature);
  if (found != by_signature_.end()) erase(found->second);
}

void KeyCache::store(const Hash128& signature, KeyList keys) {
  if (touch(signature)) return;
  const uint64_t bytes = entry_bytes(keys.size());
  if (bytes > bytes_max_) return;
  keys.keep_memo();
  insert({signature, std::move(keys), bytes});
}

const KeyList* KeyCache::find(const Hash128& signature) {
  const Entry* entry = touch(signature);
  return entry ? &entry->keys : nullptr;
}

// The entry, now the last used one; null if there is none.
KeyCache::Entry* KeyCache::touch(const Hash128& signature) {
  const auto found = by_signature_.find(signature);
  if (found == by_signature_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return &entries_.front();
}

void KeyCache::insert(Entry entry) {
  if (entry.bytes > bytes_max_) return;  // alone too large: it always travels whole
  while (bytes_ + entry.bytes > bytes_max_) erase(std::prev(entries_.end()));
  bytes_ += entry.bytes;
  entries_.push_front(std::move(entry));
  by_signature_[entries_.front().signature] = entries_.begin();
}

void KeyCache::erase(Entries::iterator entry) {
  bytes_ -= entry->bytes;
  by_signature_.erase(entry->signature);
  entries_.erase(entry);
}

}  // namespace pscloud

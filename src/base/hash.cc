#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace pscloud {

uint64_t hash64(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

uint64_t hash64(std::span<const std::byte> first, std::span<const std::byte> second) {
  if (second.empty()) return hash64(first);
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, first.data(), first.size());
  XXH3_64bits_update(&state, second.data(), second.size());
  return XXH3_64bits_digest(&state);
}

Hash128 hash128(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

}  // namespace pscloud

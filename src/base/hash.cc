#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace pscloud {

uint64_t hash64(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

Hash128 hash128(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

}  // namespace pscloud

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace pscloud {

// Spreads keys over the 64-bit range, one to one, so that small consecutive ids land on all servers.
// The finalizer of MurmurHash3 (Appleby); docs/wire-format.md gives its inverse and test values.
constexpr uint64_t mix_key(uint64_t key) {
  key ^= key >> 33;
  key *= 0xff51afd7ed558ccd;
  key ^= key >> 33;
  key *= 0xc4ceb9fe1a85ec53;
  key ^= key >> 33;
  return key;
}

// unmix_key(mix_key(k)) == k for every k.
constexpr uint64_t unmix_key(uint64_t mixed) {
  mixed ^= mixed >> 33;
  mixed *= 0x9cb4b2f8129337db;  // inverse of the second factor modulo 2^64
  mixed ^= mixed >> 33;
  mixed *= 0x4f74430c22a54005;  // inverse of the first
  mixed ^= mixed >> 33;
  return mixed;
}

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  auto operator<=>(const Hash128&) const = default;
};

// XXH3 of all the bytes: for checksums and signatures, not against an enemy.
uint64_t hash64(std::span<const std::byte> bytes);
uint64_t hash64(std::span<const std::byte> first, std::span<const std::byte> second);  // of the two as one
Hash128 hash128(std::span<const std::byte> bytes);

}  // namespace pscloud

// So that unordered containers can hold signatures: they are hashes already.
template <>
struct std::hash<pscloud::Hash128> {
  size_t operator()(const pscloud::Hash128& h) const noexcept { return h.low; }
};

#include "io/crc32c.h"

#ifdef __x86_64__
#include <nmmintrin.h>
#endif

#include <array>
#include <cstring>

namespace pscloud {
namespace {

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t rest = i;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? 0x82f63b78 : 0);
    table[i] = rest;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = make_table();

uint32_t add_bytes(uint32_t crc, Bytes bytes) {
  for (const std::byte byte : bytes) crc = kTable[(crc ^ static_cast<uint32_t>(byte)) & 0xff] ^ (crc >> 8);
  return crc;
}

#ifdef __x86_64__
// The processor's own instruction: models of gigabytes are checked at the speed of a disk.
__attribute__((target("sse4.2"))) uint32_t add_words(uint32_t crc, Bytes& bytes) {
  uint64_t wide = crc;
  for (; bytes.size() >= sizeof(uint64_t); bytes = bytes.subspan(sizeof(uint64_t))) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof word);
    wide = _mm_crc32_u64(wide, word);
  }
  return static_cast<uint32_t>(wide);
}
#endif

}  // namespace

uint32_t crc32c(Bytes bytes) {
  uint32_t crc = 0xffffffff;
#ifdef __x86_64__
  if (__builtin_cpu_supports("sse4.2")) crc = add_words(crc, bytes);
#endif
  return add_bytes(crc, bytes) ^ 0xffffffff;
}

}  // namespace pscloud

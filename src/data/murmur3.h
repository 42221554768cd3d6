#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace pscloud {

// MurmurHash3_x64_128 (Austin Appleby's, in the public domain), its two halves combined by xor: the keys of categories
// in models that dmlc's parameter server wrote.
inline uint64_t murmur3(std::string_view text, uint64_t seed) {
  constexpr uint64_t kOne = 0x87c37b91114253d5, kTwo = 0x4cf5ad432745937f;
  const auto mix_one = [](uint64_t k) { return std::rotl(k * kOne, 31) * kTwo; };
  const auto mix_two = [](uint64_t k) { return std::rotl(k * kTwo, 33) * kOne; };
  const auto finish = [](uint64_t k) {
    k = (k ^ k >> 33) * 0xff51afd7ed558ccd;
    k = (k ^ k >> 33) * 0xc4ceb9fe1a85ec53;
    return k ^ k >> 33;
  };
  uint64_t one = seed, two = seed;
  std::string_view rest = text;
  for (; rest.size() >= 16; rest.remove_prefix(16)) {
    uint64_t words[2];
    std::memcpy(words, rest.data(), sizeof words);
    one = (std::rotl(one ^ mix_one(words[0]), 27) + two) * 5 + 0x52dce729;
    two = (std::rotl(two ^ mix_two(words[1]), 31) + one) * 5 + 0x38495ab5;
  }
  uint64_t words[2] = {};
  if (!rest.empty()) std::memcpy(words, rest.data(), rest.size());
  two ^= mix_two(words[1]);  // zero stays zero
  one ^= mix_one(words[0]);
  one ^= text.size();
  two ^= text.size();
  one += two;
  two += one;
  one = finish(one);
  two = finish(two);
  one += two;
  two += one;
  return one ^ two;
}

}  // namespace pscloud

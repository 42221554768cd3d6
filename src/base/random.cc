#include "base/random.h"

#include <bit>
#include <cmath>
#include <numbers>
#include <random>

#include "base/hash.h"

namespace pscloud {

Random::Random(uint64_t seed) {
  // Consecutive seeds must give unrelated streams, and the state must not be all zero.
  for (auto& word : state_) word = mix_key(seed += 0x9e3779b97f4a7c15);
}

Random Random::from_system() {
  std::random_device device;
  return Random(uint64_t{device()} << 32 | device());
}

uint64_t Random::next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Random::below(uint64_t bound) {
  // Lemire's multiplication with rejection of the few values that would favour small results.
  unsigned __int128 product = static_cast<unsigned __int128>(next()) * bound;
  if (static_cast<uint64_t>(product) < bound) {
    const uint64_t reject = -bound % bound;
    while (static_cast<uint64_t>(product) < reject) product = static_cast<unsigned __int128>(next()) * bound;
  }
  return static_cast<uint64_t>(product >> 64);
}

double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

float Random::normal(float mean, float stddev) {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return mean + stddev * static_cast<float>(radius * std::cos(2 * std::numbers::pi * uniform()));
}

}  // namespace pscloud

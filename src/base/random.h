#pragma once

#include <cstdint>

namespace pscloud {

// A stream of random numbers that its seed decides (xoshiro256**, Blackman and Vigna 2018).
// Not for secrets: OpenSSL makes those.
class Random {
 public:
  explicit Random(uint64_t seed);

  // Seeded by the operating system.
  static Random from_system();

  uint64_t next();
  uint64_t below(uint64_t bound);  // 0..bound-1, every value as likely; bound > 0
  double uniform();                // [0, 1)
  bool chance(double probability) { return probability > 0 && uniform() < probability; }
  float normal(float mean, float stddev);  // one draw costs two numbers (Box-Muller, no state kept)

 private:
  uint64_t state_[4];
};

}  // namespace pscloud

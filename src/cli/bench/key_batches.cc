#include "cli/bench/key_batches.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"

namespace pscloud {

KeyBatches::KeyBatches(uint64_t keys, size_t batch, double zipf_s, uint64_t seed)
    : keys_(keys), batch_(batch), random_(seed), taken_(keys) {
  CHECK(batch <= keys);
  if (zipf_s > 0) zipf_ = std::make_unique<ZipfRanks>(keys, zipf_s);
}

Key KeyBatches::draw() {
  if (!zipf_) return random_.below(keys_);
  // Hot keys that lie side by side would share cache lines, which real ones do not.
  return mix_key(zipf_->draw(random_)) % keys_;
}

std::vector<Key> KeyBatches::next() {
  // Enough to find every key of a uniform draw, n ln n; hot keys may leave others without a chance.
  constexpr size_t kDrawsMax = 50;
  std::vector<Key> batch;
  batch.reserve(batch_);
  for (size_t draws = 0; batch.size() < batch_ && draws < batch_ * kDrawsMax; ++draws) {
    const Key key = draw();
    if (taken_[key]) continue;
    taken_[key] = true;
    batch.push_back(key);
  }
  for (const Key key : batch) taken_[key] = false;
  std::ranges::sort(batch);
  return batch;
}

}  // namespace pscloud

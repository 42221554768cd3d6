#pragma once

#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/mutex.h"

namespace pscloud {

// The memory that the caller was lent, as long as it holds it: who pushes from there needs no copy. Thread-safe.
class LentBuffers {
 public:
  void add(const SharedBuffer& buffer) {
    MutexLock lock(mutex_);
    lent_.push_back(buffer);
  }

  // The one that holds these floats; null if they are ordinary ones.
  SharedBuffer find(std::span<const float> values) {
    MutexLock lock(mutex_);
    std::erase_if(lent_, [](const auto& one) { return one.expired(); });
    const Bytes bytes = bytes_of(values);
    for (const auto& one : lent_) {
      SharedBuffer buffer = one.lock();
      if (!buffer || bytes.data() < buffer->data()) continue;
      if (bytes.data() + bytes.size() <= buffer->data() + buffer->size()) return buffer;
    }
    return nullptr;
  }

 private:
  Mutex mutex_;
  std::vector<std::weak_ptr<const Buffer>> lent_ GUARDED_BY(mutex_);
};

}  // namespace pscloud

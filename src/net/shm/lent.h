#pragma once

#include <map>
#include <memory>

#include "base/bytes.h"
#include "net/shm/segment.h"

namespace pscloud {

// The memory a process lends to others on its machine: what it sends from there is not copied.
class LentMemory {
 public:
  struct Lent {
    uint32_t number = 0;  // never 0, never used again
    std::shared_ptr<ShmSegment> segment;
  };

  // Zeros, aligned to a page; lent until the last copy of the buffer's keeper is gone.
  Result<Buffer> lend(size_t size) {
    auto segment = TRY(ShmSegment::make(size));
    std::erase_if(segments_, [](const auto& one) { return one.second.segment.expired(); });
    segments_[segment->data()] = {++last_number_, segment};
    return Buffer({segment->data(), size}, segment);
  }

  // The segment that all of these bytes lie in; none if they are not lent.
  Lent find(Bytes bytes) const {
    auto found = segments_.upper_bound(bytes.data());
    if (found == segments_.begin()) return {};
    --found;
    const auto segment = found->second.segment.lock();
    if (!segment || !segment->holds(bytes.data(), bytes.size())) return {};
    return {found->second.number, segment};
  }

 private:
  struct Known {
    uint32_t number = 0;
    std::weak_ptr<ShmSegment> segment;
  };
  std::map<const std::byte*, Known> segments_;  // by their first byte
  uint32_t last_number_ = 0;
};

}  // namespace pscloud

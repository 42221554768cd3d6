#include "engine/server/work_queue.h"

#include <algorithm>

namespace pscloud {

WorkQueue::WorkQueue(const std::vector<uint64_t>& homes) : size_(homes.size()) {
  for (uint64_t number = 0; number < homes.size(); ++number) {
    (homes[number] == 0 ? free_ : kept_[homes[number]]).push_back(number);
  }
}

std::optional<uint64_t> WorkQueue::take(uint64_t session) {
  if (empty()) return std::nullopt;
  --size_;
  const auto mine = kept_.find(session);
  // In the order of the items, or one worker alone would do them in another order once it has done some of them.
  const bool own = mine != kept_.end() && (free_.empty() || mine->second.front() < free_.front());
  if (!own && !free_.empty()) {
    const uint64_t number = free_.front();
    free_.pop_front();
    return number;
  }
  const auto less_left = [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); };
  const auto from = own ? mine : std::ranges::max_element(kept_, less_left);
  std::deque<uint64_t>& numbers = from->second;
  const uint64_t number = own ? numbers.front() : numbers.back();
  own ? numbers.pop_front() : numbers.pop_back();
  if (numbers.empty()) kept_.erase(from);
  return number;
}

void WorkQueue::put_back(uint64_t number) {
  ++size_;
  free_.push_front(number);
}

void WorkQueue::forget(uint64_t session) {
  const auto gone = kept_.extract(session);
  if (gone) free_.insert(free_.end(), gone.mapped().begin(), gone.mapped().end());
}

}  // namespace pscloud

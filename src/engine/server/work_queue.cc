#include "engine/server/work_queue.h"

namespace pscloud {

WorkQueue::WorkQueue(const std::vector<uint64_t>& homes) {
  for (uint64_t number = 0; number < homes.size(); ++number) {
    (homes[number] == 0 ? free_ : kept_[homes[number]]).push_back(number);
  }
}

std::optional<uint64_t> WorkQueue::take(uint64_t session) {
  const auto mine = kept_.find(session);
  // In the order of the items, or one worker alone would do them in another order once it has done some of them.
  const bool own = mine != kept_.end() && (free_.empty() || mine->second.front() < free_.front());
  if (!own && free_.empty()) return std::nullopt;
  std::deque<uint64_t>& numbers = own ? mine->second : free_;
  const uint64_t number = numbers.front();
  numbers.pop_front();
  if (own && numbers.empty()) kept_.erase(mine);
  return number;
}

std::optional<uint64_t> WorkQueue::take_kept(const std::function<bool(uint64_t session)>& may_lose) {
  auto from = kept_.end();
  for (auto at = kept_.begin(); at != kept_.end(); ++at) {
    const bool has_more = from == kept_.end() || at->second.size() > from->second.size();
    if (has_more && may_lose(at->first)) from = at;
  }
  if (from == kept_.end()) return std::nullopt;
  const uint64_t number = from->second.back();
  from->second.pop_back();
  if (from->second.empty()) kept_.erase(from);
  return number;
}

void WorkQueue::put_back(uint64_t number) { free_.push_front(number); }

void WorkQueue::forget(uint64_t session) {
  const auto gone = kept_.extract(session);
  if (gone) free_.insert(free_.end(), gone.mapped().begin(), gone.mapped().end());
}

}  // namespace pscloud

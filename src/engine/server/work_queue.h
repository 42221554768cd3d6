#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace pscloud {

// Items of work that nobody has, by their numbers. Some are kept for a worker: one that it has done before, as in an
// earlier pass over the same data, for which it may have at hand what it needs; or one that was dealt to it.
class WorkQueue {
 public:
  // `homes` has of each item the session that it is kept for, or 0.
  explicit WorkQueue(const std::vector<uint64_t>& homes);

  // The first of those that are for this worker or for anybody.
  std::optional<uint64_t> take(uint64_t session);
  // Of those workers that `may_lose` one: the last of the one that has most left.
  std::optional<uint64_t> take_kept(const std::function<bool(uint64_t session)>& may_lose);
  // It comes first, whoever asks.
  void put_back(uint64_t number);
  // This worker is gone: what was kept for it is for anybody.
  void forget(uint64_t session);
  // By session; none is empty.
  const std::map<uint64_t, std::deque<uint64_t>>& kept() const { return kept_; }

 private:
  std::deque<uint64_t> free_;
  std::map<uint64_t, std::deque<uint64_t>> kept_;
};

}  // namespace pscloud

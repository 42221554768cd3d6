#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

namespace pscloud {

// Items of work that nobody has, by their numbers. One that a worker has done before, as in an earlier pass over the
// same data, is kept for it as long as there is something else for the others: it may have at hand what it needs.
class WorkQueue {
 public:
  // `homes` has of each item the session that it is kept for, or 0.
  explicit WorkQueue(const std::vector<uint64_t>& homes);

  bool empty() const { return size_ == 0; }
  // The first of those that are for this worker or for anybody; else the last of the worker that has most left.
  std::optional<uint64_t> take(uint64_t session);
  // It comes first, whoever asks.
  void put_back(uint64_t number);
  // This worker is gone: what was kept for it is for anybody.
  void forget(uint64_t session);

 private:
  size_t size_ = 0;
  std::deque<uint64_t> free_;
  std::map<uint64_t, std::deque<uint64_t>> kept_;  // by session; none is empty
};

}  // namespace pscloud

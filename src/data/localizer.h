#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pscloud/types.h"

namespace pscloud {

// Numbers the different keys of a minibatch 0, 1, 2, ... in increasing order, so that parameters and gradients are
// plain arrays while it is worked on. Keeps its memory from one minibatch to the next. One thread.
//
// Keys that lie close together, as ids do that were counted up, are marked in a map of bits: the number of a key is the
// number of bits before its own, and nothing is compared or sorted. Others, as hashes are, go through a table of hashes
// and are sorted afterwards.
class Localizer {
 public:
  static constexpr uint32_t kFeaturesMax = 1u << 30;

  // At most kFeaturesMax of them.
  void localize(std::span<const Key> features);

  std::span<const Key> keys() const { return keys_; }             // strictly increasing
  std::span<const uint32_t> columns() const { return columns_; }  // of each feature: its key's number

 private:
  struct Seen {
    Key key;
    uint32_t number;  // in order of appearance
  };

  // False if some of them are outside of the range.
  bool localize_close(std::span<const Key> features);
  void localize_any(std::span<const Key> features);
  void number_by_appearance(std::span<const Key> features);
  void make_slots(size_t count);
  void grow_slots();
  // Fibonacci hashing: the top bits of the product depend on all bits of the key.
  size_t slot_of(Key key) const { return static_cast<size_t>((key * 0x9e3779b97f4a7c15) >> shift_); }
  void sort_seen();

  // Keys that lie close together: from where to where they were in earlier minibatches, and the map of the last, which
  // is empty before there was one.
  Key least_ = 0;
  Key range_ = 0;
  std::vector<uint64_t> map_;

  std::vector<uint32_t> slots_;  // open addressing: 1 + number of a key seen, or 0; half of them at most are used
  size_t mask_ = 0;
  int shift_ = 0;
  std::vector<Seen> seen_;
  std::vector<Seen> aside_;
  std::vector<uint32_t> ranks_;  // by number: the place among the sorted
  std::vector<Key> keys_;
  std::vector<uint32_t> columns_;
};

}  // namespace pscloud

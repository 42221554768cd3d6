#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/table/row_memo.h"
#include "pscloud/types.h"

namespace pscloud {

// The keys of a request. Copies share one list: a key cache and the operations that use it, which may outlive its place
// in the cache. With the list goes the table's memo of it, if the cache asked for one. Belongs to one thread.
class KeyList {
 public:
  KeyList() = default;
  KeyList(std::vector<Key> keys) {  // NOLINT(google-explicit-constructor): a list is a list
    if (!keys.empty()) shared_ = std::make_shared<Shared>(Shared{std::move(keys), nullptr});
  }
  KeyList(std::initializer_list<Key> keys) : KeyList(std::vector<Key>(keys)) {}

  // From now on tables keep in it what they learn of it.
  void keep_memo() {
    if (shared_ && !shared_->memo) shared_->memo = std::make_unique<RowMemo>();
  }
  RowMemo* memo() const { return shared_ ? shared_->memo.get() : nullptr; }

  using value_type = Key;
  using const_iterator = const Key*;
  const Key* data() const { return shared_ ? shared_->keys.data() : nullptr; }
  size_t size() const { return shared_ ? shared_->keys.size() : 0; }
  bool empty() const { return size() == 0; }
  const Key* begin() const { return data(); }
  const Key* end() const { return data() + size(); }
  friend bool operator==(const KeyList& a, const KeyList& b) { return std::ranges::equal(a, b); }

 private:
  struct Shared {
    std::vector<Key> keys;
    std::unique_ptr<RowMemo> memo;
  };
  std::shared_ptr<Shared> shared_;
};

}  // namespace pscloud

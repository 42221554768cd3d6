#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "engine/message.h"
#include "engine/server/work_queue.h"

namespace pscloud {

struct WorkRules {
  SlowWork slow = SlowWork::kRepeat;
  WorkDeal deal = WorkDeal::kFirstCome;
};

// Items of work that the workers of a job share out among them. Each counts as done once. One whose worker is gone is
// given again, and so is one whose worker is much slower than the others once there is nothing else to do.
class WorkPool {
 public:
  // `homes`: of each item the worker that it is kept for (work_queue.h); none: they are for anybody.
  explicit WorkPool(std::vector<std::string> items, const WorkRules& rules = {}, Time now = {},
                    std::vector<uint64_t> homes = {});

  // The items it was made of were these.
  bool was_made_of(const std::vector<std::string>& items) const { return hash_of(items) == hash_; }

  // An item for this worker, or whom it must wait for, or a pause, or that all is done.
  TakenMessage take(uint64_t session, Time now, const std::function<std::string(uint64_t)>& name_of);
  // Of an item that is not done.
  const std::string& text_of(uint64_t number) const { return items_[number].text; }
  // It would count.
  bool may_finish(uint64_t session, uint64_t number) const {
    return number < items_.size() && items_[number].held_by(session);
  }
  // Whether that counts: false if another was first. kInvalid if the item was not given to this worker.
  Result<bool> finish(uint64_t session, uint64_t number, Time now);
  // Nothing is given from now on; what the dead leave undone waits too. False if there is a pause, or was one of this
  // number or a higher one.
  bool pause(uint64_t number);
  // False if there is no pause of this number.
  bool resume(uint64_t number);
  // This worker is gone.
  void forget(uint64_t session);

  uint64_t bytes() const { return bytes_; }

 private:
  struct Holder {
    uint64_t session;
    Time since;
  };
  struct Item {
    std::string text;
    std::vector<Holder> holders;
    bool given = false;
    bool done = false;

    bool held_by(uint64_t session) const;
  };

  static Hash128 hash_of(const std::vector<std::string>& items);
  TakenMessage give(uint64_t number, uint64_t session, Time now);
  bool is_slow(const Item& item, Time now) const;
  bool has_taken_long(Time since, Time now) const;
  bool may_lose(uint64_t session, Time now) const;
  std::string holding_up(const std::function<std::string(uint64_t)>& name_of) const;

  const Hash128 hash_;
  const WorkRules rules_;
  const Time made_;
  const size_t count_;
  std::vector<Item> items_;  // none once all are done
  WorkQueue free_;
  std::set<uint64_t> held_;         // and not done
  std::map<uint64_t, Time> heard_;  // of workers: when they last began or ended an item
  size_t done_ = 0;
  bool paused_ = false;
  uint64_t last_pause_ = 0;
  Duration time_taken_{};  // by all that are done
  uint64_t bytes_ = 0;     // of texts
};

}  // namespace pscloud

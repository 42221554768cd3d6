#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pscloud/worker.h"

namespace pscloud {

// Why a worker gives up its place in a job, for the others and the log.
inline constexpr const char* kMachineGoes = "its machine is taken away";

struct Sharing {
  SlowWork slow = SlowWork::kRepeat;
  // What every worker does when the work is paused, before it goes on.
  std::function<Result<>(uint64_t number)> on_pause = {};
  // A tally that nobody needs any more once an item is done.
  std::string forgets = {};
  // This worker does no more, and share_work() returns though the others go on. Asked before it takes an item, and when
  // it `has_item`, which others are given once it has given up its place.
  std::function<bool(bool has_item)> leaves = {};
};

// Does work together with the other workers, which call this alike: returns when all items are done. `work` does one
// item and returns what is to be added to the tally of the pool's name; that of an item counts once, whoever did it.
Result<> share_work(Worker& worker, const std::string& pool, std::span<const std::string> items,
                    const std::function<Result<std::vector<Addend>>(const WorkItem& item)>& work,
                    const Sharing& sharing = {});

// An item for people: a part of a file as such, others as they are.
std::string readable_item(const std::string& text);

}  // namespace pscloud

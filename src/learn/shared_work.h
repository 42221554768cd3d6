#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pscloud/worker.h"

namespace pscloud {

// Does work together with the other workers, which call this alike: returns when all items are done. `work` does one
// item and returns what is to be added to the tally of the pool's name; that of an item counts once, whoever did it.
Result<> share_work(Worker& worker, const std::string& pool, std::span<const std::string> items,
                    const std::function<Result<std::vector<Addend>>(const WorkItem& item)>& work);

}  // namespace pscloud

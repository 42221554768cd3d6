#include "learn/shared_work.h"

#include "base/log.h"

namespace pscloud {

Result<> share_work(Worker& worker, const std::string& pool, std::span<const std::string> items,
                    const std::function<Result<std::vector<Addend>>(const WorkItem& item)>& work,
                    const Sharing& sharing) {
  if (!TRY(worker.offer_work(pool, items, sharing.slow))) {
    log_warning("{}: this worker found other files than the one that was first; those of the first are taken", pool);
  }
  while (const auto item = TRY(worker.take_work(pool))) {
    if (item->pause) {
      if (sharing.on_pause) TRY(sharing.on_pause(item->number));
      TRY(worker.resume_work(pool, item->number));
      continue;
    }
    if (item->repeated) log_warning("{}: again, for who had it has died or is slow: {}", pool, item->text);
    const std::vector<Addend> addends = TRY(work(*item));
    TRY(worker.finish_work(pool, item->number, addends, sharing.forgets));
  }
  return {};
}

}  // namespace pscloud

#include "learn/shared_work.h"

#include <fmt/format.h>

#include "base/log.h"
#include "data/file_part.h"

namespace pscloud {

std::string readable_item(const std::string& text) {
  const auto part = part_of_text(text);
  if (!part) return text;
  const bool to_end = part->end == FilePart{}.end;
  if (part->begin == 0 && to_end) return part->uri;
  return fmt::format("{}, bytes {} to {},", part->uri, part->begin, to_end ? "the end" : fmt::format("{}", part->end));
}

Result<> share_work(Worker& worker, const std::string& pool, std::span<const std::string> items,
                    const std::function<Result<std::vector<Addend>>(const WorkItem& item)>& work,
                    const Sharing& sharing) {
  if (!TRY(worker.offer_work(pool, items, sharing.slow))) {
    log_warning("{}: this worker found other files than the one that was first; those of the first are taken", pool);
  }
  const auto leaves = [&](bool has_item) { return sharing.leaves && sharing.leaves(has_item); };
  while (!leaves(false)) {
    const auto item = TRY(worker.take_work(pool));
    if (!item) break;
    if (item->pause) {
      if (sharing.on_pause) TRY(sharing.on_pause(item->number));
      TRY(worker.resume_work(pool, item->number));
      continue;
    }
    if (leaves(true)) break;
    const std::vector<Addend> addends = TRY(work(*item));
    // Not before: if who had it has failed because of what is in it, this worker fails alike, and that is the news.
    if (item->repeated) {
      log_warning("{}: {} again, for who had it has left, has died or is slow", pool, readable_item(item->text));
    }
    TRY(worker.finish_work(pool, item->number, addends, sharing.forgets));
  }
  return {};
}

}  // namespace pscloud

// Synchronous online training: the parts of a pass go to the workers by their ranks, one to each in a round.

#include <algorithm>

#include "base/log.h"
#include "learn/online_trainer.h"
#include "learn/shared_work.h"

namespace pscloud {

// All workers know the same of who is there and what is left, so each finds its part by itself.
Result<> OnlineTrainer::train_rounds(uint32_t pass, const OnlineData& data) {
  const std::vector<std::string> parts = items_of_pass(data.parts, {.shuffle = settings_.selection.shuffle}, pass);
  std::vector<uint32_t> left = parts_left(pass, parts.size());
  while (!left.empty()) {
    const size_t given = std::min(left.size(), ranks_.size());
    const auto mine = std::ranges::find(ranks_, static_cast<uint32_t>(worker_.rank())) - ranks_.begin();
    if (static_cast<size_t>(mine) < given) TRY(train_one(pass, left[mine], parts));
    const bool leaves = is_leaving();
    const LockStep::Round round = TRY(steps_->end_round({.stays = !leaves, .checkpoint = is_checkpoint_due()}));
    const uint32_t first = left.front();
    const auto done = TRY(worker_.tally(pass_name(pass), {}, kPassDone + first, left[given - 1] - first + 1));
    std::vector<uint32_t> undone;
    for (const uint32_t part : std::span(left).first(given)) {
      if (done[part - first] == 0) undone.push_back(part);
    }
    for (const uint32_t part : undone) {
      if (!worker_.is_first()) break;
      log_warning("{}: {} again, for who had it has died: this model is not to the bit that of another run",
                  pass_name(pass), readable_item(parts[part]));
    }
    repeated_parts_ += undone.size();
    left.erase(left.begin(), left.begin() + static_cast<ptrdiff_t>(given));
    left.insert(left.begin(), undone.begin(), undone.end());
    ranks_ = round.ranks;
    if (round.checkpoint) TRY(write_down(++last_checkpoint_, pass, data));
    if (leaves) return leave_early();
  }
  return count_pass(pass);
}

// Before the end of the round, so that all others find it done after that.
Result<> OnlineTrainer::train_one(uint32_t pass, uint32_t number, std::span<const std::string> parts) {
  const uint64_t before = examples_;
  TRY(train_part(TRY(part_of_text(parts[number])), pass));
  std::vector<Addend> addends{{kPassExamples, static_cast<double>(examples_ - before)}, {kPassDone + number, 1}};
  if (counts_bad_lines(pass, parts, number)) {
    addends.push_back({kPassBadLines, static_cast<double>(online_->examples().bad_lines().count)});
  }
  TRY(worker_.tally(pass_name(pass), addends, 0, 0));
  return {};
}

}  // namespace pscloud

#include "engine/server/push_staleness.h"

#include <algorithm>

namespace pscloud {
namespace {

constexpr Duration kTellEvery = std::chrono::seconds(2);

}  // namespace

void PushStaleness::on_pull(TableId table, uint64_t session) {
  Table& each = tables_[table];
  each.seen[session] = each.pushes;
}

void PushStaleness::on_push(TableId table, uint64_t session, Time now) {
  Table& each = tables_[table];
  if (const auto seen = each.seen.find(session); seen != each.seen.end()) {
    const uint64_t others = each.pushes - seen->second++;
    ++count_;
    sum_ += others;
    largest_ = std::max(largest_, others);
  }
  ++each.pushes;
  if (now < tell_at_) return;
  if (count_ > 0) tell();
  tell_at_ = now + kTellEvery;
}

void PushStaleness::forget(uint64_t session) {
  for (auto& [id, table] : tables_) table.seen.erase(session);
}

// The owners of a process tell by the same gauges, in turn: each has its share of all keys, so that they are alike.
void PushStaleness::tell() {
  if (told_mean_ == nullptr) {
    told_mean_ =
        &metrics_.gauge("pscloud_staleness", "pushes of others since the pull before a push, mean of two seconds");
    told_largest_ = &metrics_.gauge("pscloud_staleness_max", "the largest of the same");
  }
  told_mean_->set(static_cast<double>(sum_) / static_cast<double>(count_));
  told_largest_->set(static_cast<double>(largest_));
  count_ = sum_ = largest_ = 0;
}

}  // namespace pscloud

#include "engine/server/work_pool.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"

namespace pscloud {

namespace {
// One that takes so much longer than others did is slow; but not before this time.
constexpr int kSlowTimes = 4;
constexpr Duration kSlowLeast = std::chrono::seconds(5);

std::vector<uint64_t> for_anybody_else(std::vector<uint64_t> homes, size_t items) {
  homes.resize(items);
  return homes;
}
}  // namespace

WorkPool::WorkPool(std::vector<std::string> items, SlowWork slow, std::vector<uint64_t> homes)
    : hash_(hash_of(items)),
      slow_(slow),
      count_(items.size()),
      items_(items.size()),
      free_(for_anybody_else(std::move(homes), items.size())) {
  for (size_t i = 0; i < items.size(); ++i) {
    bytes_ += items[i].size() + sizeof(Item);
    items_[i].text = std::move(items[i]);
  }
}

Hash128 WorkPool::hash_of(const std::vector<std::string>& items) {
  ByteWriter all;
  for (const std::string& item : items) all.put_text(item);
  return hash128(all.bytes());
}

bool WorkPool::Item::held_by(uint64_t session) const {
  return std::ranges::find(holders, session, &Holder::session) != holders.end();
}

TakenMessage WorkPool::take(uint64_t session, Time now, const std::function<std::string(uint64_t)>& name_of) {
  // Before the end: the last items may be done in a pause.
  if (paused_ && held_.empty()) {
    return {.state = TakenMessage::State::kPause, .item = {.number = last_pause_, .text = {}}, .waiting_for = {}};
  }
  if (!paused_) {
    if (const auto number = free_.take(session)) return give(*number, session, now);
  }
  if (done_ == count_) return {.state = TakenMessage::State::kEnd, .item = {}, .waiting_for = {}};
  std::string names;
  for (const uint64_t number : held_) {
    const Item& item = items_[number];
    if (is_slow(item, now) && !item.held_by(session)) return give(number, session, now);
    const std::string name = fmt::format("{} with item {}", name_of(item.holders.front().session), number);
    if (names.size() + name.size() < kTextBytesMax) names += (names.empty() ? "" : ", ") + name;
  }
  return {.state = TakenMessage::State::kWait, .item = {}, .waiting_for = names};
}

TakenMessage WorkPool::give(uint64_t number, uint64_t session, Time now) {
  Item& item = items_[number];
  TakenMessage taken{.state = TakenMessage::State::kGiven,
                     .item = {.number = number, .text = item.text, .repeated = item.given},
                     .waiting_for = {}};
  item.given = true;
  item.holders.push_back({session, now});
  held_.insert(number);
  return taken;
}

// Two at most are at it.
bool WorkPool::is_slow(const Item& item, Time now) const {
  if (slow_ == SlowWork::kAwait || paused_ || done_ == 0 || item.holders.size() != 1) return false;
  const Duration usual = time_taken_ / static_cast<int64_t>(done_);
  return now - item.holders.front().since > std::max(kSlowLeast, usual * kSlowTimes);
}

Result<bool> WorkPool::finish(uint64_t session, uint64_t number, Time now) {
  if (number >= count_) return invalid("item {} of work that has {}", number, count_);
  if (done_ == count_ || items_[number].done) return false;
  Item& item = items_[number];
  const auto holder = std::ranges::find(item.holders, session, &Holder::session);
  if (holder == item.holders.end()) return invalid("item {} of the work was not given to this worker", number);
  time_taken_ += now - holder->since;
  item.done = true;
  item.holders.clear();
  held_.erase(number);
  bytes_ -= item.text.size();
  item.text = {};
  // Jobs have many pools, one after the other: what is over takes no room.
  if (++done_ == count_) {
    items_ = {};
    bytes_ = 0;
  }
  return true;
}

bool WorkPool::pause(uint64_t number) {
  if (paused_ || number <= last_pause_) return false;
  paused_ = true;
  last_pause_ = number;
  return true;
}

bool WorkPool::resume(uint64_t number) {
  if (!paused_ || number != last_pause_) return false;
  paused_ = false;
  return true;
}

void WorkPool::forget(uint64_t session) {
  free_.forget(session);
  for (auto at = held_.begin(); at != held_.end();) {
    const uint64_t number = *at;
    Item& item = items_[number];
    std::erase_if(item.holders, [&](const Holder& holder) { return holder.session == session; });
    if (!item.holders.empty()) {
      ++at;
      continue;
    }
    at = held_.erase(at);
    free_.put_back(number);
  }
}

}  // namespace pscloud

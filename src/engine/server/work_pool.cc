#include "engine/server/work_pool.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"

namespace pscloud {

namespace {
// One that takes so much longer than others did is slow; but not before this time.
constexpr int kSlowTimes = 4;
constexpr Duration kSlowLeast = std::chrono::seconds(5);
// What was dealt shall be where it is in every run, though a machine may have been busy with something else.
constexpr Duration kSlowLeastIfDealt = std::chrono::seconds(30);

std::vector<uint64_t> for_anybody_else(std::vector<uint64_t> homes, size_t items) {
  homes.resize(items);
  return homes;
}
}  // namespace

WorkPool::WorkPool(std::vector<std::string> items, const WorkRules& rules, Time now, std::vector<uint64_t> homes)
    : hash_(hash_of(items)),
      rules_(rules),
      made_(now),
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
    auto number = free_.take(session);
    if (!number) number = free_.take_kept([&](uint64_t other) { return may_lose(other, now); });
    if (number) return give(*number, session, now);
  }
  if (done_ == count_) return {.state = TakenMessage::State::kEnd, .item = {}, .waiting_for = {}};
  for (const uint64_t number : held_) {
    const Item& item = items_[number];
    if (is_slow(item, now) && !item.held_by(session)) return give(number, session, now);
  }
  return {.state = TakenMessage::State::kWait, .item = {}, .waiting_for = holding_up(name_of)};
}

// Whom those wait for that get nothing.
std::string WorkPool::holding_up(const std::function<std::string(uint64_t)>& name_of) const {
  std::string names;
  const auto add = [&](uint64_t session, uint64_t number) {
    const std::string name = fmt::format("{} with item {}", name_of(session), number);
    if (names.size() + name.size() < kTextBytesMax) names += (names.empty() ? "" : ", ") + name;
  };
  for (const uint64_t number : held_) add(items_[number].holders.front().session, number);
  for (const auto& [session, numbers] : free_.kept()) add(session, numbers.front());
  return names;
}

TakenMessage WorkPool::give(uint64_t number, uint64_t session, Time now) {
  Item& item = items_[number];
  TakenMessage taken{.state = TakenMessage::State::kGiven,
                     .item = {.number = number, .text = item.text, .repeated = item.given},
                     .waiting_for = {}};
  item.given = true;
  item.holders.push_back({session, now});
  heard_[session] = now;
  held_.insert(number);
  return taken;
}

// Two at most are at it.
bool WorkPool::is_slow(const Item& item, Time now) const {
  if (rules_.slow == SlowWork::kAwait || paused_ || item.holders.size() != 1) return false;
  return has_taken_long(item.holders.front().since, now);
}

// Unlike those that are done.
bool WorkPool::has_taken_long(Time since, Time now) const {
  if (done_ == 0) return false;
  const Duration usual = time_taken_ / static_cast<int64_t>(done_);
  const Duration least = rules_.deal == WorkDeal::kByRank ? kSlowLeastIfDealt : kSlowLeast;
  return now - since > std::max(least, usual * kSlowTimes);
}

// An item that is kept for it, to another.
bool WorkPool::may_lose(uint64_t session, Time now) const {
  if (rules_.deal == WorkDeal::kFirstCome) return true;
  const auto heard = heard_.find(session);
  return has_taken_long(heard == heard_.end() ? made_ : heard->second, now);
}

Result<bool> WorkPool::finish(uint64_t session, uint64_t number, Time now) {
  if (number >= count_) return invalid("item {} of work that has {}", number, count_);
  if (done_ == count_ || items_[number].done) return false;
  Item& item = items_[number];
  const auto holder = std::ranges::find(item.holders, session, &Holder::session);
  if (holder == item.holders.end()) return invalid("item {} of the work was not given to this worker", number);
  time_taken_ += now - holder->since;
  heard_[session] = now;
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
  heard_.erase(session);
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

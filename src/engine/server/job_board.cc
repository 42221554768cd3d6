#include "engine/server/job_board.h"

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "base/hash.h"

namespace pscloud {

namespace {
constexpr uint64_t kBoardBytesMax = uint64_t{512} << 20;
constexpr uint64_t kEntryBytes = 256;  // of a pool or a tally without anything in it, about
constexpr uint64_t kHomeBytes = 64;
constexpr size_t kHomesMax = 1 << 20;

uint64_t hash_of_item(const std::string& text) { return hash64(bytes_of(text)); }
}  // namespace

Result<SharedBuffer> JobBoard::serve(const Frame& frame, Time now) {
  const uint64_t session = frame.header.session;
  switch (frame.header.type) {
    case FrameType::kOfferWork:
      return encode(YesNoMessage{TRY(offer(TRY(decode<OfferWorkMessage>(frame.bytes())), now))});
    case FrameType::kTakeWork: return encode(TRY(take(session, TRY(decode<TextMessage>(frame.bytes())).text, now)));
    case FrameType::kFinishWork:
      return encode(YesNoMessage{TRY(finish(session, TRY(decode<FinishWorkMessage>(frame.bytes())), now))});
    case FrameType::kPauseWork: return encode(YesNoMessage{TRY(pause(TRY(decode<PauseWorkMessage>(frame.bytes()))))});
    default: return encode(TRY(tally(TRY(decode<TallyMessage>(frame.bytes())))));
  }
}

void JobBoard::forget(uint64_t session) {
  for (auto& [name, pool] : pools_) pool.forget(session);
  std::erase_if(homes_, [&](const auto& home) { return home.second == session; });
}

// Whoever comes first makes the pool.
Result<bool> JobBoard::offer(OfferWorkMessage message, Time now) {
  if (const auto found = pools_.find(message.pool); found != pools_.end()) {
    return found->second.was_made_of(message.items);
  }
  uint64_t bytes = 0;
  for (const std::string& item : message.items) bytes += item.size() + kEntryBytes;
  TRY(check_room(message.pool, bytes));
  std::vector<uint64_t> homes = homes_of(message);
  const WorkRules rules{message.slow, message.deal};
  pools_.try_emplace(std::move(message.pool), std::move(message.items), rules, now, std::move(homes));
  return true;
}

// Of each item the worker that it is kept for; 0: it is for anybody.
std::vector<uint64_t> JobBoard::homes_of(const OfferWorkMessage& message) const {
  std::vector<uint64_t> homes;
  if (message.deal == WorkDeal::kByRank) {
    const std::vector<uint64_t> workers = workers_();
    for (size_t i = 0; i < message.items.size(); ++i) homes.push_back(workers[i % workers.size()]);
    return homes;
  }
  for (const std::string& item : message.items) {
    const auto home = homes_.find(hash_of_item(item));
    homes.push_back(home == homes_.end() ? 0 : home->second);
  }
  return homes;
}

Result<TakenMessage> JobBoard::take(uint64_t session, const std::string& pool, Time now) {
  return TRY(find_pool(pool))->take(session, now, name_of_);
}

Result<bool> JobBoard::finish(uint64_t session, const FinishWorkMessage& message, Time now) {
  WorkPool* const pool = TRY(find_pool(message.pool));
  if (!pool->may_finish(session, message.number)) return pool->finish(session, message.number, now);
  TRY(add(message.pool, message.addends));
  if (homes_.size() < kHomesMax) homes_[hash_of_item(pool->text_of(message.number))] = session;
  if (!message.forgets.empty()) tallies_.erase(message.forgets);
  return pool->finish(session, message.number, now);
}

Result<bool> JobBoard::pause(const PauseWorkMessage& message) {
  WorkPool* const pool = TRY(find_pool(message.pool));
  return message.begins ? pool->pause(message.number) : pool->resume(message.number);
}

Result<TallyReplyMessage> JobBoard::tally(const TallyMessage& message) {
  if (message.first > TallyMessage::kPlacesMax || message.count > kPayloadBytesMax / sizeof(double) / 2) {
    return invalid("{} places from {} of tally '{}' are too many for one message", message.count, message.first,
                   message.tally);
  }
  TRY(add(message.tally, message.addends));
  TallyReplyMessage reply;
  reply.sums.resize(message.count);
  const auto found = tallies_.find(message.tally);
  if (found == tallies_.end()) return reply;
  const std::vector<double>& sums = found->second;
  for (size_t i = 0; i < message.count && message.first + i < sums.size(); ++i) reply.sums[i] = sums[message.first + i];
  return reply;
}

// All or nothing.
Result<> JobBoard::add(const std::string& name, const std::vector<Addend>& addends) {
  if (addends.empty()) return {};
  uint32_t last = 0;
  for (const Addend& addend : addends) {
    if (addend.place >= TallyMessage::kPlacesMax) return invalid("place {} of tally '{}'", addend.place, name);
    if (!std::isfinite(addend.value)) return invalid("{} cannot be added to tally '{}'", addend.value, name);
    last = std::max(last, addend.place);
  }
  const auto found = tallies_.find(name);
  if (const size_t size = found == tallies_.end() ? 0 : found->second.size(); last >= size) {
    TRY(check_room(name, (last + 1 - size) * sizeof(double) + kEntryBytes));
  }
  std::vector<double>& sums = tallies_[name];
  if (last >= sums.size()) sums.resize(last + 1);
  for (const Addend& addend : addends) sums[addend.place] += addend.value;
  return {};
}

Result<WorkPool*> JobBoard::find_pool(const std::string& name) {
  const auto found = pools_.find(name);
  if (found == pools_.end()) return not_found("no work '{}' has been offered", name);
  return &found->second;
}

Result<> JobBoard::check_room(const std::string& name, uint64_t bytes) const {
  uint64_t used = homes_.size() * kHomeBytes;
  for (const auto& [pool_name, pool] : pools_) used += pool.bytes() + kEntryBytes;
  for (const auto& [tally_name, sums] : tallies_) used += sums.size() * sizeof(double) + kEntryBytes;
  if (used + bytes <= kBoardBytesMax) return {};
  return invalid("no room for {} bytes of '{}': this server keeps {} for work and tallies, and {} are used", bytes,
                 name, kBoardBytesMax, used);
}

}  // namespace pscloud

#include "engine/sim/script.h"

#include <algorithm>
#include <array>
#include <limits>

#include "engine/message.h"
#include "engine/worker/slicer.h"

namespace pscloud {

namespace {
// Pools, each with its tally, by how many are done.
constexpr std::array<const char*, 4> kPools = {"work", "sum", "work again", "sum again"};
constexpr uint32_t kSumPlace = 3;
bool sums_up(uint32_t shared) { return shared % 2 == 1; }

constexpr double kPauseChance = 0.2;
constexpr double kRefusedChance = 0.05;
constexpr Duration kWorkPause = std::chrono::milliseconds(50);
}  // namespace

Script::Script(Options options, WorkerCore& core, Oracle& oracle, Random& random,
               std::function<void(const std::string&)> violation,
               std::function<void(Duration, std::function<void()>)> later)
    : options_(options),
      core_(core),
      oracle_(oracle),
      random_(random),
      violation_(std::move(violation)),
      later_(std::move(later)) {
  for (const TableSpec& spec : oracle_.tables()) specs_.push_back(std::make_shared<const TableSpec>(spec));
}

void Script::start() {
  core_.start(guarded([this] {
    oracle_.begins(options_.column, core_.clock());
    create_tables(0);
  }));
}

// A step that follows when the last one went well.
std::function<void(const Result<>&)> Script::guarded(std::function<void()> then) {
  return [this, then = std::move(then)](const Result<>& result) {
    if (dead_ || ended_) return;
    if (!result) return fail(result.error());
    then();
  };
}

bool Script::goes_on(const Result<>& result) {
  return !result && result.error().code == Code::kTimeout && ++time_outs_ <= options_.time_outs_max;
}

void Script::fail(const Error& why) {
  if (why.message.empty()) violation_("a request failed without saying why");
  error_ = why;
  ended_ = true;
  oracle_.ends(options_.column, Oracle::Life::kLost);
  core_.leave(true, "its script failed", [](const Result<>&) {});
}

void Script::create_tables(uint32_t table) {
  if (table == specs_.size()) {
    if (options_.sets_rows) set_rows();
    return next();
  }
  core_.submit_to_all("create", FrameType::kCreateTable, encode(*specs_[table]), nullptr,
                      [this, table](const Result<>& result) {
                        if (dead_ || ended_) return;
                        const bool again = goes_on(result);
                        if (!result && !again) return fail(result.error());
                        create_tables(again ? table : table + 1);
                      });
}

// To zero, which they are: one that counted again after a push would undo that.
void Script::set_rows() {
  for (uint32_t table = 0; table < specs_.size(); ++table) {
    std::vector<Key> keys;
    for (const size_t key : choose_keys(table, false)) keys.push_back(oracle_.key(table, key));
    const std::vector<float> zeros(keys.size() * oracle_.columns(), 0);
    const TableSpec& spec = *specs_[table];
    core_.submit("set", slice_rows_to_set(table_id(spec.name), spec, core_.owners(), keys, zeros, ScanKind::kAll),
                 [this](const Result<>& result) {
                   if (!dead_ && !ended_ && !result && !goes_on(result)) fail(result.error());
                 });
  }
}

void Script::think() {
  if (options_.think_max.count() == 0) return next();
  later_(Duration(static_cast<int64_t>(random_.below(options_.think_max.count()))), [this] { next(); });
}

// In the order of their keys; for a range without gaps.
std::vector<size_t> Script::choose_keys(uint32_t table, bool range) {
  std::vector<size_t> chosen;
  const size_t first = random_.below(oracle_.keys());
  for (size_t key = range ? first : 0; key < oracle_.keys(); ++key) {
    if (random_.chance(0.5)) {
      chosen.push_back(key);
    } else if (range) {
      break;
    }
  }
  if (chosen.empty()) chosen.push_back(first);
  std::ranges::sort(chosen, {}, [&](size_t key) { return oracle_.key(table, key); });
  return chosen;
}

void Script::next() {
  // What need not be waited for is not: many requests are under way when the next fault comes.
  while (!dead_ && !ended_) {
    if (operation_ == options_.operations) return end_round();
    ++operation_;
    const bool wait = !random_.chance(options_.impatient);
    const auto table = static_cast<uint32_t>(random_.below(specs_.size()));
    if (random_.chance(kRefusedChance)) push_what_is_refused(table);
    const bool range = specs_[table]->kind == TableKind::kDense && random_.chance(0.5);
    const std::vector<size_t> chosen = choose_keys(table, range);
    std::vector<Key> keys;
    for (const size_t key : chosen) keys.push_back(oracle_.key(table, key));

    const uint64_t kind = random_.below(10);
    const FrameType type = kind < 5 ? FrameType::kPush : kind < 8 ? FrameType::kPull : FrameType::kPushPull;
    const uint32_t width = oracle_.columns();
    std::vector<float> values;
    if (type != FrameType::kPull) {
      values.assign(keys.size() * width, 0);
      for (size_t i = 0; i < keys.size(); ++i) values[i * width + options_.column] = 1;
    }
    auto out = std::make_shared<std::vector<float>>(type == FrameType::kPush ? 0 : keys.size() * width, -1);
    // The read half of a push-pull comes after its own push; a bsp table shows it only when the clock has ended.
    if (type != FrameType::kPull) {
      for (const size_t key : chosen) oracle_.pushed(table, key, options_.column);
    }
    auto read = std::make_shared<Oracle::Read>(oracle_.begin_read(table, options_.column, chosen));
    const TableId id = table_id(specs_[table]->name);
    auto slices = range ? slice_rows(type, id, specs_[table], core_.owners(), keys[0], keys.size(), values, *out)
                        : slice_keys(type, id, specs_[table], core_.owners(), keys, values, *out);
    const auto settle = [this, type, table, chosen, out, read, wait](const Result<>& result) {
      if (dead_ || ended_) return;
      if (goes_on(result)) {
        oracle_.gave_up(options_.column);
        return wait ? think() : void();
      }
      if (!result) return fail(result.error());
      if (type != FrameType::kPull) {
        for (const size_t key : chosen) oracle_.acknowledged(table, key, options_.column);
      }
      if (type != FrameType::kPush) {
        if (const std::string violation = oracle_.judge(*read, *out); !violation.empty()) violation_(violation);
      }
      if (wait) think();
    };
    core_.submit("operation", std::move(slices), settle);
    if (wait) return;
  }
}

// Not a number: every owner refuses it, however often it is sent, and nothing of it counts.
void Script::push_what_is_refused(uint32_t table) {
  std::vector<Key> keys;
  for (const size_t key : choose_keys(table, false)) keys.push_back(oracle_.key(table, key));
  const std::vector<float> values(keys.size() * oracle_.columns(), std::numeric_limits<float>::quiet_NaN());
  auto slices = slice_keys(FrameType::kPush, table_id(specs_[table]->name), specs_[table], core_.owners(), keys, values,
                           std::span<float>{});
  core_.submit("refused push", std::move(slices), [this](const Result<>& result) {
    if (dead_ || ended_ || goes_on(result)) return;
    if (result) return violation_("a push of what is no number was taken");
    if (result.error().code != Code::kInvalid) return fail(result.error());
    if (result.error().message.empty()) violation_("a push was refused without saying why");
  });
}

void Script::end_round() {
  operation_ = 0;
  ++round_;
  if (round_ > options_.rounds) {
    return options_.work > 0 ? share_work() : leave();
  }
  oracle_.ticked(options_.column);
  const bool barrier = options_.barrier_every > 0 && round_ % options_.barrier_every == 0;
  const bool wait = !random_.chance(options_.impatient);
  const auto then = [this, barrier] { barrier ? pass_barrier() : next(); };
  // A clock ends though nobody has waited for it long enough.
  core_.tick([this, wait, then](const Result<>& result) {
    if (dead_ || ended_) return;
    if (!result && !goes_on(result)) return fail(result.error());
    if (wait) then();
  });
  if (!wait && !dead_ && !ended_) then();
}

void Script::pass_barrier() {
  core_.barrier([this](const Result<>& result) {
    if (dead_ || ended_) return;
    if (goes_on(result)) return later_(Duration(1), [this] { pass_barrier(); });
    if (!result) return fail(result.error());
    next();
  });
}

void Script::leave() {
  core_.leave(false, "", [this](const Result<>& result) {
    if (dead_ || ended_) return;
    ended_ = true;
    oracle_.ends(options_.column, result ? Oracle::Life::kDone : Oracle::Life::kLost);
    if (!result) error_ = result.error();
  });
}

// Asks the first owner, which has the work.
template <class Message>
void Script::ask_board(FrameType type, const SharedBuffer& payload, std::function<void(const Message&)> then) {
  auto answer = std::make_shared<SharedBuffer>();
  std::vector<Slice> slices(1);
  slices[0].part.type = type;
  slices[0].part.raw = payload;
  slices[0].sink = [answer](const Part::Answer& got) { *answer = got.raw; };
  core_.submit("work", std::move(slices), guarded([this, answer, then = std::move(then)] {
                 const auto message = decode<Message>(*answer ? (*answer)->span() : Bytes{});
                 if (!message) return violation_("an answer about work cannot be read: " + message.error().message);
                 then(*message);
               }));
}

void Script::share_work() {
  if (shared_ == kPools.size()) return leave();
  std::vector<std::string> items;
  for (uint32_t i = 0; i < (sums_up(shared_) ? 1 : options_.work); ++i) items.push_back(fmt::format("item {}", i));
  // Who sums up must not be at it when the others go on.
  offer_work(items, sums_up(shared_) ? SlowWork::kAwait : SlowWork::kRepeat);
}

void Script::offer_work(const std::vector<std::string>& items, SlowWork slow) {
  // The first to offer decides.
  const WorkDeal deal = random_.chance(0.5) ? WorkDeal::kByRank : WorkDeal::kFirstCome;
  const OfferWorkMessage offer{.pool = kPools[shared_], .items = items, .slow = slow, .deal = deal};
  ask_board<YesNoMessage>(FrameType::kOfferWork, encode(offer), [this](const YesNoMessage& same) {
    if (!same.yes) violation_("the work is not that which was offered");
    take_work();
  });
}

void Script::take_work() {
  if (dead_ || ended_) return;
  const TextMessage pool{kPools[shared_]};
  ask_board<TakenMessage>(FrameType::kTakeWork, encode(pool), [this](const TakenMessage& taken) {
    switch (taken.state) {
      case TakenMessage::State::kGiven: return begin_item(taken.item);
      case TakenMessage::State::kWait:
        if (taken.waiting_for.empty()) violation_("a worker waits for work and is not told for whom");
        return later_(kWorkPause, [this] { take_work(); });
      case TakenMessage::State::kPause: return pause_work(taken.item.number, false, [this] { take_work(); });
      case TakenMessage::State::kEnd: break;
    }
    end_work();
  });
}

void Script::begin_item(const WorkItem& item) {
  const uint64_t number = item.number;
  if (item.text != fmt::format("item {}", number)) violation_("an item of work is not what was offered");
  violation_(oracle_.work(shared_).given(number, item.repeated));
  if (random_.chance(kPauseChance)) pause_work(number + 1, true, [] {});
  const auto finish = [this, number] { finish_work(number); };
  const Duration pause(1 + static_cast<int64_t>(random_.below(options_.think_max.count() + 1)));
  if (!sums_up(shared_)) return later_(pause, finish);
  // It is not forgotten before this one says that it is summed up.
  check_tally(kPools[shared_ - 1], [this, pause, finish] { later_(pause, finish); });
}

// Begins a pause, or ends the one of this number, whoever has begun it.
void Script::pause_work(uint64_t number, bool begins, std::function<void()> then) {
  const PauseWorkMessage message{.pool = kPools[shared_], .number = number, .begins = begins};
  ask_board<YesNoMessage>(FrameType::kPauseWork, encode(message),
                          [then = std::move(then)](const YesNoMessage&) { then(); });
}

void Script::finish_work(uint64_t number) {
  if (dead_ || ended_) return;
  oracle_.work(shared_).finishes(number);
  FinishWorkMessage finish{.pool = kPools[shared_], .number = number, .addends = {{kSumPlace, 1}}, .forgets = {}};
  if (sums_up(shared_)) {
    finish.addends[0].value = options_.work;
    finish.forgets = kPools[shared_ - 1];
  }
  ask_board<YesNoMessage>(FrameType::kFinishWork, encode(finish), [this, number](const YesNoMessage& counts) {
    if (counts.yes) violation_(oracle_.work(shared_).counted(number));
    take_work();
  });
}

void Script::end_work() {
  violation_(oracle_.work(shared_).ended(sums_up(shared_) ? 1 : options_.work));
  const uint32_t done = shared_++;
  if (!sums_up(done)) return share_work();
  check_tally(kPools[done], [this] { share_work(); });
}

// Every item has added to it once: together as many as there are.
void Script::check_tally(const char* tally, std::function<void()> then) {
  const TallyMessage message{.tally = tally, .addends = {}, .first = kSumPlace, .count = 1};
  ask_board<TallyReplyMessage>(FrameType::kTally, encode(message),
                               [this, tally, then = std::move(then)](const TallyReplyMessage& reply) {
                                 if (reply.sums != std::vector<double>{static_cast<double>(options_.work)}) {
                                   violation_(fmt::format("{} items of work add up to {} in '{}'", options_.work,
                                                          reply.sums.empty() ? 0 : reply.sums[0], tally));
                                 }
                                 then();
                               });
}

}  // namespace pscloud

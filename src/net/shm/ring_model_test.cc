// Tries every order in which the steps of two processes can happen, on a machine that delays stores as real ones do: a
// store waits in a buffer of its processor until it is flushed, at any later time or by a fence. Both processes run the
// code that ships.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "net/shm/ring.h"

namespace pscloud {
namespace {

// Runs a program again and again, each time with other choices, until all have been made.
class Choices {
 public:
  // False: from here on everything has been tried, though another way led here.
  bool is_new(const std::vector<uint32_t>& state) { return at_ < path_.size() || seen_.insert(state).second; }
  size_t states() const { return seen_.size(); }
  uint32_t choose(uint32_t count) {
    if (count <= 1) return 0;
    if (at_ == path_.size()) path_.emplace_back(0, count);
    return path_[at_++].first;
  }
  // False when every path has been gone.
  bool next() {
    at_ = 0;
    while (!path_.empty() && path_.back().first + 1 == path_.back().second) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().first;
    return true;
  }

 private:
  std::vector<std::pair<uint32_t, uint32_t>> path_;
  size_t at_ = 0;
  std::set<std::vector<uint32_t>> seen_;
};

constexpr int kSleeper = 0;  // runs through; before each of its accesses the other one may do any number of its own
constexpr int kWaker = 1;    // is begun anew for each of its accesses, and fed what it has read so far

class Machine {
 public:
  Machine(Choices& choices, bool fences) : choices_(choices), fences_(fences) {}

  struct Stop {};
  struct KnownFromHere {};
  std::function<void()> waker;

  uint32_t load(int place) {
    return access([&] {
      for (auto store = delayed_[running_].rbegin(); store != delayed_[running_].rend(); ++store) {
        if (store->first == place) return store->second;
      }
      return memory_[static_cast<size_t>(place)];
    });
  }
  void store(int place, uint32_t value) {
    access([&] {
      delayed_[running_].emplace_back(place, value);
      return 0u;
    });
  }
  void fence() {
    access([&] {
      while (fences_ && !delayed_[running_].empty()) flush_one(running_);
      return 0u;
    });
  }
  void ring() {
    access([&] {
      rings_ = true;
      return 0u;
    });
  }
  // The sleeper has been woken: by the bell, which is heard then, or by something else.
  void hear() {
    access([&] {
      rings_ = false;
      return 0u;
    });
  }
  bool rings() const { return rings_; }
  // The waker comes to its end.
  void finish() {
    while (!waker_done_) waker_step();
  }

 private:
  uint32_t access(const std::function<uint32_t()>& action) {
    if (running_ == kSleeper) {
      others_go_first();
      read_.push_back(action());
      return read_.back();
    }
    if (replayed_ < results_.size()) return results_[replayed_++];
    if (std::exchange(stepped_, true)) throw Stop{};
    results_.push_back(action());
    return results_[replayed_++];
  }
  void others_go_first() {
    while (true) {
      std::vector<std::function<void()>> moves{nullptr};
      if (!waker_done_) moves.emplace_back([this] { waker_step(); });
      for (const int processor : {kSleeper, kWaker}) {
        if (!delayed_[processor].empty()) moves.emplace_back([this, processor] { flush_one(processor); });
      }
      if (moves.size() > 1 && !choices_.is_new(state())) throw KnownFromHere{};
      const uint32_t choice = choices_.choose(static_cast<uint32_t>(moves.size()));
      if (choice == 0) return;
      moves[choice]();
    }
  }
  // All that decides what can still happen.
  std::vector<uint32_t> state() const {
    std::vector<uint32_t> all(memory_.begin(), memory_.end());
    all.push_back(rings_ ? 1 : 0);
    all.push_back(waker_done_ ? 1 : 0);
    for (const std::vector<uint32_t>& done : {read_, results_}) {
      all.push_back(static_cast<uint32_t>(done.size()));
      all.insert(all.end(), done.begin(), done.end());
    }
    for (const auto& stores : delayed_) {
      all.push_back(static_cast<uint32_t>(stores.size()));
      for (const auto& [place, value] : stores) all.insert(all.end(), {static_cast<uint32_t>(place), value});
    }
    return all;
  }
  void waker_step() {
    running_ = kWaker;
    replayed_ = 0;
    stepped_ = false;
    try {
      waker();
      waker_done_ = true;
    } catch (const Stop&) {
    }
    running_ = kSleeper;
  }
  void flush_one(int processor) {
    const auto [place, value] = delayed_[processor].front();
    delayed_[processor].pop_front();
    memory_[static_cast<size_t>(place)] = value;
  }

  Choices& choices_;
  const bool fences_;
  std::array<uint32_t, 8> memory_{};
  std::array<std::deque<std::pair<int, uint32_t>>, 2> delayed_;
  int running_ = kSleeper;
  bool rings_ = false;
  std::vector<uint32_t> read_;     // of the sleeper's accesses so far
  std::vector<uint32_t> results_;  // of the waker's
  size_t replayed_ = 0;
  bool stepped_ = false;
  bool waker_done_ = false;
};

Machine* machine = nullptr;

struct ModelAtomic {
  int place = 0;
  void store(uint32_t value, std::memory_order) { machine->store(place, value); }
  uint32_t load(std::memory_order) const { return machine->load(place); }
  static void fence() { machine->fence(); }
};
using Doorbell = ShmDoorbell<ModelAtomic>;

constexpr int kSentOfTheWaker = 4;

struct Trials {
  size_t states = 0;
  bool lost = false;  // it sleeps, there is something to do, and nobody rang
};

// `sleep` is true if it ends asleep, with something to do that it does not know of.
Trials try_all_orders(bool fences, const std::function<bool(Doorbell&)>& sleep,
                      const std::function<void(Doorbell&)>& wake) {
  Choices choices;
  Trials outcome;
  do {
    Machine model(choices, fences);
    machine = &model;
    ShmControl<ModelAtomic> sleepers{{0}, {1}, {2}, {3}};
    ShmControl<ModelAtomic> wakers{{kSentOfTheWaker}, {5}, {6}, {7}};
    Doorbell sleeper(sleepers, wakers);
    model.waker = [&] {
      Doorbell waker(wakers, sleepers);
      wake(waker);
    };
    try {
      const bool sleeps = sleep(sleeper);
      model.finish();
      outcome.lost |= sleeps && !model.rings();
    } catch (const Machine::KnownFromHere&) {
    }
  } while (!outcome.lost && choices.next());
  outcome.states = choices.states();
  machine = nullptr;
  return outcome;
}

bool sleep_until_a_slot_comes(Doorbell& doorbell) { return doorbell.prepare_sleep(0, false, 0); }
void fill_a_slot(Doorbell& doorbell) {
  if (doorbell.publish(1)) machine->ring();
}
bool sleep_until_there_is_room(Doorbell& doorbell) { return doorbell.prepare_sleep(0, true, 0); }
void take_a_slot(Doorbell& doorbell) {
  if (doorbell.take(1)) machine->ring();
}

// It was woken once, by the bell or by something else, took what there was, and goes to sleep again.
bool sleep_twice(Doorbell& doorbell) {
  (void)doorbell.prepare_sleep(0, false, 0);
  machine->hear();
  doorbell.awake();
  const uint32_t taken = machine->load(kSentOfTheWaker);
  return doorbell.prepare_sleep(taken, false, 0) && taken < 2;
}
// The second may find that the bell rang for this sleep already.
void fill_two_slots(Doorbell& doorbell) {
  if (doorbell.publish(1)) machine->ring();
  if (doorbell.publish(2)) machine->ring();
}

TEST(ShmDoorbellModel, NoOrderOfStepsLosesASlot) {
  const Trials outcome = try_all_orders(true, sleep_until_a_slot_comes, fill_a_slot);
  EXPECT_FALSE(outcome.lost);
  EXPECT_GT(outcome.states, 50u) << "so few states cannot be all";
}

TEST(ShmDoorbellModel, NoOrderOfStepsLosesRoom) {
  const Trials outcome = try_all_orders(true, sleep_until_there_is_room, take_a_slot);
  EXPECT_FALSE(outcome.lost);
  EXPECT_GT(outcome.states, 50u);
}

TEST(ShmDoorbellModel, OneRingForEachSleepIsEnough) {
  const Trials outcome = try_all_orders(true, sleep_twice, fill_two_slots);
  EXPECT_FALSE(outcome.lost);
  EXPECT_GT(outcome.states, 50u);
  EXPECT_TRUE(try_all_orders(false, sleep_twice, fill_two_slots).lost);
}

TEST(ShmDoorbellModel, WithoutFencesBothAreLost) {
  EXPECT_TRUE(try_all_orders(false, sleep_until_a_slot_comes, fill_a_slot).lost) << "else the model sees no mistake";
  EXPECT_TRUE(try_all_orders(false, sleep_until_there_is_room, take_a_slot).lost);
}

}  // namespace
}  // namespace pscloud

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/sim/oracle.h"
#include "engine/worker/worker_core.h"

namespace pscloud {

// What one incarnation of a worker does in a simulated job: creates the tables, then rounds of pushes and pulls on
// random keys, some waited for and some not, some refused, clocks, barriers; then shares the work with the others, with
// pauses, until all of it is done, and the same work once more, after each of which one of them sums it up for all;
// then goodbye. Tells the oracle everything.
class Script {
 public:
  struct Options {
    uint32_t column = 0;
    uint32_t rounds = 3;
    uint32_t operations = 4;     // in a round
    uint32_t barrier_every = 0;  // rounds; 0: never. All workers alike, or their program would be wrong
    uint32_t work = 0;           // items to share
    bool sets_rows = false;      // before it pushes; only for one that is alone, or it would undo what others push
    double impatient = 0.3;      // chance not to wait for an answer
    Duration think_max{};        // pause before the next step, at most
    uint32_t time_outs_max = 0;  // requests that may take too long; after one more it fails
  };

  Script(Options options, WorkerCore& core, Oracle& oracle, Random& random,
         std::function<void(const std::string&)> violation, std::function<void(Duration, std::function<void()>)> later);

  void start();
  bool ended() const { return ended_; }
  const Error& error() const { return error_; }  // why it ended early; empty message: it did not
  uint32_t time_outs() const { return time_outs_; }
  void give_up() { dead_ = true; }  // the worker was killed: nothing it was told counts any more

 private:
  void create_tables(uint32_t table);
  void set_rows();
  void pass_barrier();
  void next();
  std::vector<size_t> choose_keys(uint32_t table, bool range);
  void think();  // then next()
  void push_what_is_refused(uint32_t table);
  void end_round();
  void share_work();
  void offer_work(const std::vector<std::string>& items, SlowWork slow);
  void take_work();
  void begin_item(const WorkItem& item);
  void end_work();
  void pause_work(uint64_t number, bool begins, std::function<void()> then);
  void finish_work(uint64_t number);
  void check_tally(const char* tally, std::function<void()> then);
  void leave();
  template <class Message>
  void ask_board(FrameType type, const SharedBuffer& payload, std::function<void(const Message&)> then);
  bool goes_on(const Result<>& result);  // though that took too long
  void fail(const Error& why);
  std::function<void(const Result<>&)> guarded(std::function<void()> then);

  const Options options_;
  WorkerCore& core_;
  Oracle& oracle_;
  Random& random_;
  std::function<void(const std::string&)> violation_;
  std::function<void(Duration, std::function<void()>)> later_;
  std::vector<std::shared_ptr<const TableSpec>> specs_;
  uint32_t round_ = 0;
  uint32_t operation_ = 0;
  uint32_t time_outs_ = 0;
  uint32_t shared_ = 0;  // pools of work that are done: the items, their sum, the items again, their sum
  bool ended_ = false;
  bool dead_ = false;
  Error error_{Code::kUnavailable, ""};
};

}  // namespace pscloud

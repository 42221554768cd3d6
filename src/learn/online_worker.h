#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "data/minibatch_reader.h"
#include "learn/local_embeddings.h"
#include "learn/lock_step.h"
#include "learn/model_tables.h"
#include "learn/online_settings.h"
#include "learn/tail_filter.h"
#include "pscloud/worker.h"

namespace pscloud {

// How the examples of a minibatch were scored before the model learned from them.
struct MinibatchReport {
  uint64_t examples = 0;
  double loss = 0;     // sum
  uint64_t right = 0;  // scores with the sign of the label
  double auc = 0.5;
  double pull_seconds = 0;  // that the worker waited for the weights
  double push_seconds = 0;  // and for earlier pushes
};

// What the push of one minibatch did to the weights of its keys.
struct WeightChange {
  double change2 = 0;   // sum of squared changes
  double weights2 = 0;  // of squared weights afterwards
};

// Which pass over the data it is: in the first one keys are counted, of the last one nothing is kept in the cache.
struct DataPass {
  uint32_t number = 1;
  bool last = false;

  bool first() const { return number == 1; }
};

// Trains online: for each minibatch pulls the weights and embeddings of its keys, scores it, and pushes the gradient.
// Borrows all that it is given. One thread.
class OnlineWorker {
 public:
  // `report` is called after each minibatch; an error of it ends train(). `cache` is for what will be read again.
  OnlineWorker(Worker& worker, const ModelTables& model, FileStore& store, const OnlineSettings& settings,
               std::function<Result<>(const MinibatchReport&)> report, const CachePlace& cache = {});

  // Returns when the servers have all gradients of the part. After an error some of them are there, and the next part
  // may follow.
  Result<> train(const FilePart& part, const DataPass& pass = {});

  const MinibatchReader& examples() const { return reader_; }

  // Features that are seldom are left out from now on. In the first pass over the data they are counted too: a feature
  // is there from its first time after enough. Borrowed.
  void leave_out_tail(TailFilter* filter) { tail_ = filter; }

  // Ends a clock with each minibatch from now on. Borrowed.
  void go_in_step(LockStep* steps) { steps_ = steps; }

  // Looks at what the next push does, which costs a little; last_change() tells when it is there. Not in
  // step: a push takes effect with those of others.
  void measure_next_push() { measure_ = true; }
  const WeightChange& last_change() const { return last_change_; }

 private:
  // A minibatch under way, and its memory.
  struct Minibatch {
    NumberedRows read;
    NumberedRows kept;                       // without features that are left out
    const NumberedRows* examples = nullptr;  // one of them
    std::vector<float> weights;
    std::vector<float> updated;  // weights after the push, if it is measured
    std::optional<LocalEmbeddings> embedded;
    bool asked_embeddings = false;
    std::optional<Ticket> pulled;
    std::optional<Ticket> pushed;
  };

  Result<> train_rows(const FilePart& part);
  Result<std::unique_ptr<Minibatch>> unused_minibatch();
  Result<> begin();
  Result<> drop_tail(Minibatch& minibatch);
  Result<> ask_embeddings(Minibatch& minibatch);
  Result<> finish(Minibatch& minibatch);
  Result<> wait_for_push(Minibatch& minibatch);

  Worker& worker_;
  const ModelTables& model_;
  const OnlineSettings& settings_;
  std::function<Result<>(const MinibatchReport&)> report_;
  MinibatchReader reader_;
  NumberedRows next_;                // read, and not begun
  std::vector<NumberedRows> spare_;  // memory of earlier ones
  std::vector<float> scores_;        // of the minibatch that is worked on, as its gradient
  std::vector<float> gradient_;
  TailFilter* tail_ = nullptr;
  LockStep* steps_ = nullptr;
  DataPass pass_;
  std::vector<Key> kept_keys_;  // while features are left out
  std::vector<uint32_t> kept_columns_;
  RowBlock kept_;
  const uint64_t seed_;
  Random random_;  // of dropout
  const SystemClock clock_;
  double push_seconds_ = 0;  // not reported yet
  bool measure_ = false;
  WeightChange last_change_;
  std::deque<std::unique_ptr<Minibatch>> begun_;  // at most max_delay + 1 within train(); the oldest in front
  std::deque<std::unique_ptr<Minibatch>> done_;   // but for their pushes
};

}  // namespace pscloud

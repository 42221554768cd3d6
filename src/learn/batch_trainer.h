#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "data/localizer.h"
#include "learn/batch_loader.h"
#include "learn/batch_settings.h"
#include "learn/batch_state.h"
#include "learn/block_descent.h"
#include "learn/block_plan.h"
#include "learn/checkpoint.pb.h"
#include "learn/newton_descent.h"
#include "pscloud/worker.h"

namespace pscloud {

// How far all workers together are.
struct BatchProgress {
  // kLoading and kIterating come about once a second while that goes on, the others each at its end.
  enum class Stage : uint8_t { kLoading, kLoaded, kPrepared, kIterating, kIteration, kValidated, kEnd };
  Stage stage = Stage::kLoading;
  double seconds = 0;        // since the beginning
  double stage_seconds = 0;  // of this stage, or of this iteration
  ReadProgress reading;      // while it loads
  uint64_t examples = 0;
  uint64_t bad_lines = 0;
  uint64_t keys = 0;  // that are trained
  uint32_t blocks = 0;
  uint32_t iteration = 0;
  double iterated = 0;          // iterations that are done, the present one in part,
  double iterated_before = 0;   // those before the data were last loaded,
  double iterated_seconds = 0;  // and how long the others took
  double objective = 0;
  double relative = 0;   // by which share the objective has fallen
  uint64_t nonzero = 0;  // weights
  double threshold = 0;  // of the KKT filter in this iteration
  uint64_t active = 0;   // weights that it has left
  double busy_min = 0;   // seconds that workers have computed in this iteration: the least
  double busy_max = 0;   // and the most
  bool converged = false;
  bool validated = false;  // the model was tried on the validation data, after the last iteration:
  double validation_auc = 0;
  double validation_accuracy = 0;
  double validation_logloss = 0;
  bool stopped = false;  // for the validation data got no better
};

// One worker's part in training a model with all data at once, from the first file to the model in files: DARLIN,
// block coordinate descent with bounded delay. All workers of the job do the same, and share the parts of the files.
// If one of them dies, the others load all data anew and go on with the weights as they are. Borrows all that it is
// given. One thread.
class BatchTrainer {
 public:
  // Of an example. Newton's method looks at all pairs of them, blocks at each once.
  static constexpr double kNewtonFeaturesMax = 64;

  // `show` is called by one of the workers; `cancelled` asked often, by all of them. When `leaving` says so this worker
  // goes after the iteration, and after a checkpoint if there are any. `scratch` is for validation data that shall not
  // be parsed after each iteration, unless the settings name a place for them; null: they are.
  BatchTrainer(Worker& worker, FileStore& store, const BatchSettings& settings,
               std::function<void(const BatchProgress&)> show, std::function<bool()> cancelled,
               std::function<bool()> leaving = {}, FileStore* scratch = nullptr);

  // Sums that are still on their way need the memory that they go to.
  ~BatchTrainer();

  // Returns when the objective has converged, or after the last iteration, and the model is saved.
  Result<BatchProgress> run();

 private:
  // A block on its way.
  struct Task {
    std::vector<uint32_t> columns;
    std::vector<Key> keys;
    std::vector<float> sums;  // gradient and curvature of each
    std::optional<Ticket> pushed;
    std::optional<Ticket> pulled;
  };
  enum class Outcome { kDone, kWorkerLost };

  Result<> load();
  Result<> prepare();
  Result<std::vector<uint8_t>> wanted(const Localizer& localizer);
  Result<std::vector<uint8_t>> find_keepers(std::span<const Key> keys);
  Result<Table> agree(const char* name, std::span<const Key> keys, std::span<float> words);
  Result<bool> is_for_newton(std::span<const uint8_t> kept);
  Result<> arrange_rows(const Localizer& localizer, std::span<const Key> keys, std::span<const uint8_t> kept);
  Result<> arrange_columns(const Localizer& localizer, std::span<const uint8_t> common, std::span<const uint8_t> kept);
  Result<std::vector<uint32_t>> find_blocks(const Localizer& localizer);
  std::vector<Key> keys_in_order() const;
  Result<> start_weights();
  Result<> resume();
  Result<Outcome> iterate();
  void go_on();
  Result<> write_down();
  Result<> step_together();
  Result<> sweep(std::span<const uint32_t> blocks, uint32_t max_delay, bool of_iteration);
  Result<> begin(uint32_t block, size_t together);
  Result<> finish_oldest();
  Result<Outcome> sum_up();
  Result<> count_weights();
  Result<> validate();
  Result<> write_weights();
  Result<> save(const std::string& prefix);
  Descent& descent() { return newton_ ? static_cast<Descent&>(*newton_) : *blocks_; }
  const Descent& descent() const { return newton_ ? static_cast<const Descent&>(*newton_) : *blocks_; }
  void tell(BatchProgress::Stage stage, Time since);
  void set_iterated(double share);
  void tell_iterating(double share);
  // The same name in all workers, and another one each time that the data are loaded.
  std::string named(const char* name) const;

  Worker& worker_;
  FileStore& store_;
  const BatchSettings& settings_;
  const std::function<void(const BatchProgress&)> show_;
  const std::function<bool()> cancelled_;
  const std::function<bool()> leaving_;
  FileStore* const scratch_;
  const SystemClock clock_;
  const Time start_;
  BatchProgress progress_;
  BatchLoader loader_;
  std::vector<std::string> validation_;  // parts

  uint32_t loads_ = 0;
  Time iterating_since_;
  Time next_telling_;
  std::optional<PS::LM::Checkpoint> resumed_;  // what it goes on from, if that is not the beginning
  uint64_t last_checkpoint_ = 0;               // its number
  Time next_checkpoint_;
  bool checkpoint_due_ = false;
  bool leaves_after_this_ = false;  // iteration
  LoadedExamples loaded_;           // once they are arranged, of this worker's only the parts
  std::optional<BlockPlan> plan_;
  std::optional<BlockDescent> blocks_;   // either this,
  std::optional<NewtonDescent> newton_;  // or this
  Table weights_;
  Table holders_;
  Table sums_;
  Table trials_;
  std::vector<uint32_t> by_key_;  // columns, by their keys
  std::vector<uint8_t> kept_;     // of each column: this worker speaks for it, of those that have it
  std::vector<float> written_;    // of each column: its weight at the servers
  std::deque<Task> tasks_;        // the oldest in front
  BatchPosition at_;
  double next_threshold_ = 0;
  double busy_seconds_ = 0;
};

}  // namespace pscloud

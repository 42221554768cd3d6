#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "learn/bad_lines.h"
#include "learn/lock_step.h"
#include "learn/online_settings.h"
#include "learn/online_start.h"
#include "learn/online_worker.h"
#include "pscloud/worker.h"

namespace pscloud {

// How far all workers together are.
struct OnlineProgress {
  double seconds = 0;
  std::vector<double> pass_seconds;  // of each pass of this run that is over, without its validation
  uint64_t examples = 0;
  uint64_t resumed = 0;   // of these, before the checkpoint that this run began with
  uint64_t repeated = 0;  // of these, because a worker had died or was slow; known at the end. What a dead one has
                          // trained on and not reported is not among either
  uint64_t repeated_parts = 0;  // of the data, that were given to another worker for that reason; known at the end
  double loss = 0;              // these three are sums over examples
  double auc = 0;               // of each example that of its minibatch
  double right = 0;
  uint64_t bad_lines = 0;   // each once, whatever the passes; known after the first
  uint64_t bytes = 0;       // read
  uint64_t bytes_all = 0;   // of all files, in all passes
  uint64_t nonzero = 0;     // weights, when they were last counted
  uint32_t dim = 0;         // of embeddings; 0: the model has none
  uint64_t embeddings = 0;  // of the keys that have had one, when they were last counted
  uint32_t validated = 0;   // after this pass the model was tried on the validation data:
  double validation_auc = 0;
  double validation_accuracy = 0;
  double validation_logloss = 0;
  uint32_t stopped = 0;      // after this pass, for the validation data got no better
  uint64_t minibatches = 0;  // of these the sums of seconds that a worker waited:
  double pull_seconds = 0;   // for the weights to come,
  double push_seconds = 0;   // and for an earlier push to arrive, without which there is no room for another
  WeightChange change;       // by the last push of this worker that was measured

  double mean_loss() const { return of_examples(loss); }
  double mean_auc() const { return of_examples(auc); }
  double accuracy() const { return of_examples(right); }
  std::optional<double> update_ratio() const;  // nothing: no push was measured, or it left all weights at zero
  double examples_per_s() const { return static_cast<double>(examples - resumed) / std::max(seconds, 1e-9); }

 private:
  double of_examples(double sum) const { return examples == 0 ? 0 : sum / static_cast<double>(examples); }
};

// One worker's part in training a model online, from the first file to the model in files. All workers of the job do
// the same, and share the parts of the files. Borrows all that it is given. One thread.
class OnlineTrainer {
 public:
  // `show` is called about every settings.report_seconds by one of the workers. `scratch` is for what further passes
  // shall not read again, unless the settings name a place for it; null: they do. When `leaving` says so this worker
  // ends the part of the data that it has, sees to a checkpoint if there are any, and leaves the rest to the others.
  OnlineTrainer(Worker& worker, FileStore& store, FileStore* scratch, const OnlineSettings& settings,
                std::function<void(const OnlineProgress&)> show, std::function<bool()> leaving = {});

  // Returns when all workers have done all passes, and the model is saved: how it went in the end. kFailed if it has
  // left before.
  Result<OnlineProgress> run();

 private:
  // Places in the tally of a pass; the last for each part of the data.
  enum PassPlace : uint32_t { kPassExamples, kPassBadLines, kPassRepeated, kPassDone };

  Result<> train_pass(uint32_t pass, const OnlineData& data);
  Result<> train_rounds(uint32_t pass, const OnlineData& data);
  Result<> train_one(uint32_t pass, uint32_t number, std::span<const std::string> parts);
  std::vector<uint32_t> parts_left(uint32_t pass, size_t parts) const;
  Result<> count_pass(uint32_t pass);
  bool counts_bad_lines(uint32_t pass, std::span<const std::string> parts, uint32_t number) const;
  Result<> leave_early();
  static std::string pass_name(uint32_t pass);
  Result<> train_part(const FilePart& part, uint32_t pass);
  Result<> pause_if_due(const std::string& pool);
  bool is_checkpoint_due() const;
  bool is_leaving() const { return leaving_ && leaving_(); }
  void set_next_checkpoint();
  Result<> write_down(uint64_t number, uint32_t pass, const OnlineData& data);
  Result<> note(const MinibatchReport& report);
  Result<> report();
  Result<> add_up();
  Result<> count_weights();
  Result<> count_embeddings();
  Result<> validate_after(uint32_t pass, std::span<const std::string> parts);
  CachePlace cache() const;
  std::vector<Table> kept_tables() const;

  Worker& worker_;
  FileStore& store_;
  FileStore* const scratch_;
  const OnlineSettings& settings_;
  const std::function<void(const OnlineProgress&)> show_;
  const std::function<bool()> leaving_;
  const SystemClock clock_;
  const Time start_;
  Time next_report_;
  Time next_count_;
  Time next_checkpoint_;
  bool asked_before_leaving_ = false;  // for the next checkpoint, or another has
  bool kept_before_leaving_ = false;   // there is a checkpoint of all that it has done
  ModelTables model_;
  std::optional<TailFilter> tail_;
  OnlinePosition start_at_;
  EarlyStop early_;
  uint64_t different_ = 0;              // examples in the passes that are over, each once in a pass
  uint64_t bad_lines_ = 0;              // in the first pass, if it is over
  uint64_t repeated_parts_ = 0;         // in the passes that are over
  std::optional<LockStep> steps_;       // of synchronous training,
  std::vector<uint32_t> ranks_;         // and who takes part in its next round
  uint64_t last_checkpoint_ = 0;        // the number of it, then
  std::optional<OnlineWorker> online_;  // once there are tables
  uint64_t examples_ = 0;               // of this worker
  MinibatchReport unreported_;          // auc: a sum over examples
  uint64_t bytes_reported_ = 0;
  uint64_t minibatches_unreported_ = 0;
  uint64_t minibatches_ = 0;  // of this worker
  BadLineComplaints complaints_;
  OnlineProgress progress_;
};

}  // namespace pscloud

#include "learn/batch_trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "learn/batch_checkpoint.h"
#include "learn/checkpoint.h"
#include "learn/evaluation.h"
#include "learn/model_files.h"
#include "learn/shared_work.h"
#include "learn/table_scan.h"

namespace pscloud {
namespace {

// Places in the tally of an iteration: whole numbers, and behind them some for each worker.
enum IterationPlace : uint32_t {
  kSumExamples,
  kSumKeys,
  kSumNonzero,
  kSumActive,
  kSumCheckpoint,  // not 0: it is time for one
  kOfWorkers
};
// Of each worker by itself: there are no tallies of maxima, and sums of fractions depend on who comes first.
enum WorkerPlace : uint32_t { kWorkerBusy, kWorkerViolation, kWorkerLoss, kWorkerPenalty, kWorkerPlaces };
constexpr uint32_t kRanksMax = 1024;
constexpr std::chrono::seconds kBetweenIterating{1};  // when somebody is told

// By which share an objective has fallen. It is never below zero, where nothing is left to fall.
double relative_fall(double before, double now) { return now == 0 ? 0 : before / now - 1; }

}  // namespace

BatchTrainer::BatchTrainer(Worker& worker, FileStore& store, const BatchSettings& settings,
                           std::function<void(const BatchProgress&)> show, std::function<bool()> cancelled,
                           std::function<bool()> leaving, FileStore* scratch)
    : worker_(worker),
      store_(store),
      settings_(settings),
      show_(std::move(show)),
      cancelled_(std::move(cancelled)),
      leaving_(std::move(leaving)),
      scratch_(scratch),
      start_(clock_.now()),
      loader_(worker, store, settings) {}

BatchTrainer::~BatchTrainer() {
  for (const Task& task : tasks_) {
    if (task.pulled) (void)task.pulled->wait();
  }
}

Result<BatchProgress> BatchTrainer::run() {
  if (worker_.current_clock() > 0) return unavailable("batch training has begun without this worker");
  if (worker_.rank() >= static_cast<int>(kRanksMax)) return invalid("batch training has at most {} workers", kRanksMax);
  resumed_ = TRY(find_batch_checkpoint(worker_, store_, settings_.checkpoint));
  if (resumed_) last_checkpoint_ = resumed_->number();
  validation_ = TRY(validation_parts(worker_, store_, settings_.validation));
  next_checkpoint_ = clock_.now() + std::chrono::seconds(settings_.checkpoint.every_seconds);
  while (true) {
    TRY(load());
    TRY(prepare());
    if (TRY(iterate()) == Outcome::kDone) break;
    ++loads_;
  }
  if (settings_.model) {
    TRY(save(settings_.model->prefix));
    if (settings_.checkpoint.enabled()) TRY(remove_checkpoints(worker_, store_, settings_.checkpoint));
  }
  // Each worker that ends well knows it, and the first to end may be gone when the next is the first of all: so it is
  // not told by show().
  progress_.stage = BatchProgress::Stage::kEnd;
  progress_.seconds = in_seconds(clock_.now() - start_);
  return progress_;
}

std::string BatchTrainer::named(const char* name) const {
  return loads_ == 0 ? name : fmt::format("{} {}", name, loads_ + 1);
}

void BatchTrainer::tell(BatchProgress::Stage stage, Time since) {
  const Time now = clock_.now();
  progress_.stage = stage;
  progress_.seconds = in_seconds(now - start_);
  progress_.stage_seconds = in_seconds(now - since);
  if (worker_.is_first()) show_(progress_);
}

// Of the present iteration so much is done.
void BatchTrainer::set_iterated(double share) {
  progress_.iterated = at_.iteration + share;
  progress_.iterated_seconds = in_seconds(clock_.now() - iterating_since_);
}

// All workers go over the blocks together: the first knows how far they are.
void BatchTrainer::tell_iterating(double share) {
  const Time now = clock_.now();
  if (now < next_telling_) return;
  next_telling_ = now + kBetweenIterating;
  set_iterated(share);
  tell(BatchProgress::Stage::kIterating, now);
}

Result<BatchTrainer::Outcome> BatchTrainer::iterate() {
  const bool resumed = loads_ == 0 && resumed_;
  if (!resumed) at_ = {.iteration = at_.iteration, .early = at_.early};
  if (blocks_ && loads_ == 0 && !resumed && !settings_.prior_groups.empty()) {
    TRY(sweep(plan_->prior_order(settings_.prior_groups, settings_.prior_sweeps, settings_.random_order), 0, false));
  }
  progress_.iterated_before = at_.iteration;
  iterating_since_ = next_telling_ = clock_.now();
  bool is_first = !resumed;  // there is no objective to compare its own with
  if (resumed && at_.iteration >= settings_.iterations) TRY(count_weights());
  while (at_.iteration < settings_.iterations) {
    const Time begin = clock_.now();
    progress_.iteration = at_.iteration;
    if (newton_) {
      TRY(step_together());
    } else {
      TRY(sweep(plan_->order(at_.iteration, settings_.random_order), std::min(settings_.max_delay, at_.delay_max),
                true));
    }
    if (TRY(sum_up()) == Outcome::kWorkerLost) return Outcome::kWorkerLost;
    progress_.relative = std::exchange(is_first, false) ? 1 : relative_fall(at_.objective, progress_.objective);
    set_iterated(1);
    tell(BatchProgress::Stage::kIteration, begin);
    if (!validation_.empty()) TRY(validate());
    progress_.iteration = ++at_.iteration;
    if (settings_.save_every > 0 && settings_.model && at_.iteration % settings_.save_every == 0) {
      TRY(save(fmt::format("{}_it_{}", settings_.model->prefix, at_.iteration - 1)));
    }
    // What the filter has left out may have become wanted: it is over only when nothing moves with all features.
    if (at_.all_active && std::abs(progress_.relative) <= settings_.epsilon) {
      progress_.converged = true;
      return Outcome::kDone;
    }
    if (!validation_.empty() && at_.early.is_enough(progress_.validation_logloss, settings_.validation.early_stop)) {
      progress_.stopped = at_.iteration < settings_.iterations;
      if (progress_.stopped) return Outcome::kDone;
    }
    go_on();
    if (checkpoint_due_) TRY(write_down());
    if (leaves_after_this_) {
      TRY(worker_.give_up(kMachineGoes));
      return job_failed("left before the end: {}", kMachineGoes);
    }
  }
  return Outcome::kDone;
}

// After an iteration, to the next.
void BatchTrainer::go_on() {
  at_.objective = progress_.objective;
  if (newton_) return;
  // Nesterov's sequence, begun anew whenever it went too far (O'Donoghue and Candes, 2015).
  const bool too_far = progress_.relative < 0;
  // Most often that was the momentum. If it was the delay, there is soon less of it.
  if (too_far) at_.delay_max = std::min(settings_.max_delay, at_.delay_max) / 2;
  const double next = too_far ? 1 : (1 + std::sqrt(1 + 4 * at_.momentum * at_.momentum)) / 2;
  blocks_->extrapolate(too_far ? 0 : (at_.momentum - 1) / next);
  at_.momentum = next;
  at_.all_active = std::abs(progress_.relative) <= settings_.epsilon;
  if (at_.all_active) blocks_->activate_all();
  at_.threshold = at_.all_active ? kNoFilter : next_threshold_;
}

Result<> BatchTrainer::write_down() {
  std::vector<uint32_t> mine;  // that this worker speaks for
  std::ranges::copy_if(by_key_, std::back_inserter(mine), [&](uint32_t column) { return kept_[column] != 0; });
  TRY(write_batch_checkpoint(worker_, store_, settings_.checkpoint, ++last_checkpoint_, weights_,
                             {descent(), mine, loaded_.mine.parts}, at_, progress_.examples));
  next_checkpoint_ = clock_.now() + std::chrono::seconds(settings_.checkpoint.every_seconds);
  return {};
}

// Newton's method: all weights at once.
Result<> BatchTrainer::step_together() {
  if (cancelled_()) return job_failed("interrupted");
  std::vector<float> model(newton_->model_size());
  if (model.empty()) return {};
  const auto add_up = [&](const Table& table, std::span<float> numbers) -> Result<> {
    const Ticket pushed = worker_.push_rows(table, 0, numbers);
    (void)worker_.clock();
    auto pulled = worker_.pull_rows(table, 0, numbers).wait();
    TRY(pushed.wait());
    return pulled;
  };
  const Time begin = clock_.now();
  newton_->model(model);
  const Time modelled = clock_.now();
  TRY(add_up(sums_, model));
  const Time added = clock_.now();
  newton_->propose(model);
  std::array<float, NewtonDescent::kShares.size()> trials;
  newton_->trials(trials);
  busy_seconds_ += in_seconds(modelled - begin) + in_seconds(clock_.now() - added);
  TRY(add_up(trials_, trials));
  newton_->move(trials);
  return {};
}

// Goes over blocks. A block is begun when all before the last `max_delay` are finished. Those that are under way do not
// know of each other's steps: each must be as short as if all of them were one block.
Result<> BatchTrainer::sweep(std::span<const uint32_t> blocks, uint32_t max_delay, bool of_iteration) {
  const size_t together = std::min<size_t>(blocks.size(), size_t{max_delay} + 1);
  size_t begun = 0;
  for (const uint32_t block : blocks) {
    if (cancelled_()) return job_failed("interrupted");
    if (of_iteration) tell_iterating(static_cast<double>(begun++) / static_cast<double>(blocks.size()));
    while (tasks_.size() > max_delay) TRY(finish_oldest());
    TRY(begin(block, together));
  }
  while (!tasks_.empty()) TRY(finish_oldest());
  return {};
}

Result<> BatchTrainer::begin(uint32_t block, size_t together) {
  const Time begin = clock_.now();
  Task& task = tasks_.emplace_back();
  task.columns = blocks_->active_columns(block);
  task.sums.resize(2 * task.columns.size());
  blocks_->gradient(task.columns, task.sums, together);
  for (const uint32_t column : task.columns) task.keys.push_back(blocks_->keys()[column]);
  busy_seconds_ += in_seconds(clock_.now() - begin);
  if (!task.keys.empty()) task.pushed = worker_.push(sums_, task.keys, task.sums);
  // The sums are there when all workers have come to the end of this clock; nobody waits for it before they are needed.
  (void)worker_.clock();
  if (!task.keys.empty()) task.pulled = worker_.pull(sums_, task.keys, task.sums);
  return {};
}

Result<> BatchTrainer::finish_oldest() {
  Task& task = tasks_.front();
  if (task.pulled) {
    const auto pulled = task.pulled->wait();
    TRY(task.pushed->wait());
    TRY(pulled);
    const Time begin = clock_.now();
    blocks_->update(task.columns, task.sums, at_.threshold);
    busy_seconds_ += in_seconds(clock_.now() - begin);
  }
  tasks_.pop_front();
  return {};
}

// All workers learn how the iteration went. If one has died, its examples are missing.
Result<BatchTrainer::Outcome> BatchTrainer::sum_up() {
  TRY(write_weights());
  double penalty = 0;
  uint64_t keys = 0;
  uint64_t nonzero = 0;
  uint64_t active = 0;
  const StepRule& rule = settings_.descent.rule;
  for (size_t column = 0; column < kept_.size(); ++column) {
    if (kept_[column] == 0) continue;
    const double w = descent().weight(column);
    penalty += rule.lambda1 * std::abs(w) + rule.lambda2 / 2 * w * w;
    ++keys;
    nonzero += w != 0 ? 1 : 0;
    active += descent().is_active(column) ? 1 : 0;
  }
  const auto rank = static_cast<uint32_t>(worker_.rank());
  leaves_after_this_ = leaving_ && leaving_();
  const bool due = settings_.checkpoint.enabled() &&
                   (leaves_after_this_ || (worker_.is_first() && clock_.now() >= next_checkpoint_));
  const uint32_t mine = kOfWorkers + rank * kWorkerPlaces;
  // One is added to tell zero from nobody.
  const std::vector<Addend> addends = {{kSumExamples, static_cast<double>(descent().examples())},
                                       {kSumKeys, static_cast<double>(keys)},
                                       {kSumNonzero, static_cast<double>(nonzero)},
                                       {kSumActive, static_cast<double>(active)},
                                       {kSumCheckpoint, due ? 1.0 : 0.0},
                                       {mine + kWorkerBusy, 1 + std::exchange(busy_seconds_, 0)},
                                       {mine + kWorkerViolation, blocks_ ? blocks_->take_violation() : 0},
                                       {mine + kWorkerLoss, descent().loss()},
                                       {mine + kWorkerPenalty, penalty}};
  const std::string name = fmt::format("{} of {}", progress_.iteration, named("iteration"));
  TRY(worker_.tally(name, addends, 0, 0));
  TRY(worker_.barrier());
  const auto sums = TRY(worker_.tally(name, {}, 0, kOfWorkers + kRanksMax * kWorkerPlaces));
  if (sums[kSumExamples] < static_cast<double>(progress_.examples)) return Outcome::kWorkerLost;

  progress_.keys = static_cast<uint64_t>(sums[kSumKeys]);
  progress_.nonzero = static_cast<uint64_t>(sums[kSumNonzero]);
  progress_.active = static_cast<uint64_t>(sums[kSumActive]);
  progress_.threshold = at_.threshold;
  checkpoint_due_ = sums[kSumCheckpoint] > 0;
  progress_.busy_min = std::numeric_limits<double>::max();
  progress_.busy_max = 0;
  progress_.objective = 0;
  double violation = 0;
  for (uint32_t i = 0; i < kRanksMax; ++i) {
    const double* const of_worker = &sums[kOfWorkers + size_t{i} * kWorkerPlaces];
    const double busy = of_worker[kWorkerBusy] - 1;
    if (busy < 0) continue;
    progress_.objective += of_worker[kWorkerLoss] + of_worker[kWorkerPenalty];
    progress_.busy_min = std::min(progress_.busy_min, busy);
    progress_.busy_max = std::max(progress_.busy_max, busy);
    violation = std::max(violation, of_worker[kWorkerViolation]);
  }
  next_threshold_ = violation / static_cast<double>(progress_.examples) * settings_.kkt_ratio;
  return Outcome::kDone;
}

// No iteration is left to do: how it was after the last one. This worker's own weights have gone on from there, to
// where the next one would have begun; those at the servers have not.
Result<> BatchTrainer::count_weights() {
  progress_.iteration = at_.iteration;
  progress_.objective = at_.objective;
  double keys = 0;
  double active = 0;
  for (size_t column = 0; column < kept_.size(); ++column) {
    if (kept_[column] == 0) continue;
    ++keys;
    active += descent().is_active(column) ? 1 : 0;
  }
  const std::string name = named("resumed");
  TRY(worker_.tally(name, std::vector<Addend>{{kSumKeys, keys}, {kSumActive, active}}, 0, 0));
  TRY(worker_.barrier());
  const auto sums = TRY(worker_.tally(name, {}, 0, kOfWorkers));
  progress_.keys = static_cast<uint64_t>(sums[kSumKeys]);
  progress_.active = static_cast<uint64_t>(sums[kSumActive]);
  progress_.nonzero = TRY(count_rows(worker_, weights_)).nonzero;
  return {};
}

// The servers have all weights of this iteration.
Result<> BatchTrainer::validate() {
  const Time begin = clock_.now();
  const bool named_place = !settings_.cache_prefix.empty();
  const CachePlace cached{named_place ? &store_ : scratch_, settings_.cache_prefix + "validation-"};
  const std::string name = fmt::format("validation {} of {}", progress_.iteration, named("iteration"));
  const Scored scored = TRY(score_parts(worker_, {.weights = weights_, .embedded = {}}, store_, validation_,
                                        settings_.validation.format, settings_.strict, name, cached));
  progress_.validated = true;
  progress_.validation_auc = scored.auc;
  progress_.validation_accuracy = scored.accuracy;
  progress_.validation_logloss = scored.logloss;
  tell(BatchProgress::Stage::kValidated, begin);
  return {};
}

// What has changed goes to the servers, from where it is saved, and from where others go on if this worker dies.
Result<> BatchTrainer::write_weights() {
  std::vector<Key> keys;
  std::vector<float> weights;
  for (const uint32_t column : by_key_) {
    const auto weight = static_cast<float>(descent().weight(column));
    if (kept_[column] == 0 || weight == written_[column]) continue;
    keys.push_back(descent().keys()[column]);
    weights.push_back(weight);
    written_[column] = weight;
  }
  if (keys.empty()) return {};
  return worker_.push(weights_, keys, weights).wait();
}

Result<> BatchTrainer::save(const std::string& prefix) {
  TRY(worker_.barrier());  // all weights are there
  TRY(save_model(worker_, {.weights = weights_}, store_, {settings_.model->format, prefix}, ModelOrder::kByKey));
  return {};
}

}  // namespace pscloud

#include "learn/batch_trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
#include "base/random.h"
#include "io/file_pattern.h"
#include "learn/model_files.h"
#include "learn/table_scan.h"

namespace pscloud {
namespace {

constexpr double kNoFilter = 1e20;  // a threshold that no gradient is below
// Of an example. Newton's method looks at all pairs of them, blocks at each once.
constexpr double kNewtonFeaturesMax = 64;

// Places in the tally of an iteration; behind them two for each worker, since there are no tallies of maxima.
enum IterationPlace : uint32_t { kSumLoss, kSumExamples, kSumPenalty, kSumKeys, kSumNonzero, kSumActive, kOfWorkers };
constexpr uint32_t kRanksMax = 1024;

float start_weight(const StartWeights& start, Key key) {
  if (start.stddev == 0) return static_cast<float>(start.mean);
  return Random(mix_key(key)).normal(static_cast<float>(start.mean), static_cast<float>(start.stddev));
}

}  // namespace

BatchTrainer::BatchTrainer(Worker& worker, FileStore& store, const BatchSettings& settings,
                           std::function<void(const BatchProgress&)> show, std::function<bool()> cancelled)
    : worker_(worker),
      store_(store),
      settings_(settings),
      show_(std::move(show)),
      cancelled_(std::move(cancelled)),
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
  while (true) {
    TRY(load());
    TRY(prepare());
    if (TRY(iterate()) == Outcome::kDone) break;
    ++loads_;
  }
  if (settings_.model) TRY(save(settings_.model->prefix));
  tell(BatchProgress::Stage::kEnd, start_);
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

Result<> BatchTrainer::load() {
  const Time begin = clock_.now();
  blocks_.reset();
  newton_.reset();
  loaded_ = {};
  loaded_ = TRY(loader_.load(named("load")));
  progress_.examples = loaded_.examples;
  progress_.bad_lines = loaded_.bad_lines;
  tell(BatchProgress::Stage::kLoaded, begin);
  return {};
}

Result<> BatchTrainer::prepare() {
  const Time begin = clock_.now();
  // Who joins before all have passed this takes part in all that follows; who joins later finds that it began.
  TRY(worker_.clock().wait());
  weights_ = TRY(worker_.create_table({.name = "weights", .updater = {"assign"}}));
  Localizer localizer;
  localizer.localize(loaded_.rows.keys);
  const std::vector<uint8_t> common = TRY(wanted(localizer));
  std::vector<Key> keys;
  for (size_t number = 0; number < common.size(); ++number) {
    if (common[number] != 0) keys.push_back(localizer.keys()[number]);
  }
  std::vector<uint8_t> kept = TRY(find_keepers(keys));
  if (TRY(is_for_newton(kept))) {
    TRY(arrange_rows(localizer, keys, kept));
  } else {
    TRY(arrange_columns(localizer, common, kept));
  }
  loaded_.rows = {};
  TRY(start_weights());
  tell(BatchProgress::Stage::kPrepared, begin);
  return {};
}

// Whether all features together are few enough.
Result<bool> BatchTrainer::is_for_newton(std::span<const uint8_t> kept) {
  const std::string name = named("keys");
  const auto mine = static_cast<double>(std::ranges::count(kept, 1));
  TRY(worker_.tally(name, std::vector<Addend>{{0, mine}}, 0, 0));
  TRY(worker_.barrier());
  const double keys = TRY(worker_.tally(name, {}, 0, 1)).front();
  double features = 0;  // of an example
  for (const auto& [group, count] : loaded_.groups) features += static_cast<double>(count.features);
  features /= static_cast<double>(std::max<uint64_t>(1, loaded_.examples));
  return !settings_.blocks_per_feature && keys <= NewtonDescent::kColumnsMax && features <= kNewtonFeaturesMax;
}

// All workers have the same columns, be there entries or not, so that sums need no keys.
Result<> BatchTrainer::arrange_rows(const Localizer& localizer, std::span<const Key> keys,
                                    std::span<const uint8_t> kept) {
  std::vector<Key> all;
  for (int part = 0; part < worker_.parts(); ++part) {
    TRY(scan_part(worker_, holders_, part, ScanKind::kNonzero, [&](const ScannedRows& rows) -> Result<> {
      all.insert(all.end(), rows.keys.begin(), rows.keys.end());
      return {};
    }));
  }
  std::ranges::sort(all);
  const auto column_of = [&](Key key) { return static_cast<size_t>(std::ranges::lower_bound(all, key) - all.begin()); };
  by_key_.resize(all.size());
  std::iota(by_key_.begin(), by_key_.end(), 0);
  kept_.assign(all.size(), 0);
  for (size_t i = 0; i < keys.size(); ++i) kept_[column_of(keys[i])] = kept[i];

  constexpr size_t kNowhere = SIZE_MAX;
  std::vector<size_t> columns;  // of each of the localizer's numbers
  for (const Key key : localizer.keys()) {
    columns.push_back(std::ranges::binary_search(keys, key) ? column_of(key) : kNowhere);
  }
  const RowBlock& rows = loaded_.rows;
  RowMatrix matrix;
  size_t feature = 0;
  for (const size_t end : rows.ends) {
    for (; feature < end; ++feature) {
      const size_t column = columns[localizer.columns()[feature]];
      if (column == kNowhere) continue;
      matrix.columns.push_back(static_cast<uint16_t>(column));
      if (!rows.values.empty()) matrix.values.push_back(rows.values[feature]);
    }
    matrix.ends.push_back(matrix.columns.size());
  }
  progress_.blocks = 1;
  newton_.emplace(std::move(all), std::move(matrix), rows.labels, settings_.descent);
  // Gradient and curvature, then what shares of a step would bring.
  const auto sums = [&](const char* name, size_t rows_of_it) {
    return worker_.create_table({.name = named(name),
                                 .kind = TableKind::kDense,
                                 .rows = rows_of_it,
                                 .updater = {"assign"},
                                 .consistency = Consistency::sum()});
  };
  sums_ = TRY(sums("models", std::max<size_t>(1, newton_->model_size())));
  trials_ = TRY(sums("trials", NewtonDescent::kShares.size()));
  return {};
}

// Rows become columns, block by block.
Result<> BatchTrainer::arrange_columns(const Localizer& localizer, std::span<const uint8_t> common,
                                       std::span<const uint8_t> kept) {
  plan_.emplace(loaded_.groups, settings_.blocks_per_feature.value_or(BatchSettings::kBlocksPerFeature));
  progress_.blocks = plan_->blocks();
  sums_ = TRY(worker_.create_table({.name = named("gradients"),
                                    .width = 2,
                                    .updater = {"assign"},
                                    .consistency = Consistency::sum(),
                                    .push_filters = settings_.filters}));
  const std::span<const Key> keys = localizer.keys();
  const std::vector<uint32_t> blocks = TRY(find_blocks(localizer));
  // A counting sort by block, which keeps the order of keys within each.
  std::vector<size_t> block_ends(plan_->blocks() + 1);
  for (size_t number = 0; number < keys.size(); ++number) block_ends[blocks[number] + 1] += common[number];
  std::partial_sum(block_ends.begin(), block_ends.end(), block_ends.begin());
  block_ends.pop_back();
  std::vector<uint32_t> places(keys.size(), ColumnMatrix::kNowhere);
  by_key_.clear();
  for (size_t number = 0; number < keys.size(); ++number) {
    if (common[number] == 0) continue;
    places[number] = static_cast<uint32_t>(block_ends[blocks[number]]++);
    by_key_.push_back(places[number]);
  }
  ColumnMatrix matrix = transpose(loaded_.rows, localizer.columns(), places, by_key_.size());
  for (size_t number = 0; number < keys.size(); ++number) {
    if (common[number] != 0) matrix.keys[places[number]] = keys[number];
  }
  kept_.assign(by_key_.size(), 0);
  for (size_t i = 0; i < by_key_.size(); ++i) kept_[by_key_[i]] = kept[i];
  blocks_.emplace(std::move(matrix), loaded_.rows.labels, std::move(block_ends), settings_.descent);
  return {};
}

// Of each key: its block.
Result<std::vector<uint32_t>> BatchTrainer::find_blocks(const Localizer& localizer) {
  const std::span<const Key> keys = localizer.keys();
  const RowBlock& rows = loaded_.rows;
  std::vector<uint32_t> blocks(keys.size());
  for (size_t i = 0; i < rows.keys.size(); ++i) {
    const uint32_t number = localizer.columns()[i];
    blocks[number] = plan_->block_of(rows.groups.empty() ? 0 : rows.groups[i], keys[number]);
  }
  // A key may stand in several groups: all workers must have it in the same block.
  if (loaded_.groups.size() > 1) {
    const Table homes = TRY(worker_.create_table({.name = named("blocks"), .updater = {"assign"}}));
    std::vector<float> home(blocks.begin(), blocks.end());
    if (!keys.empty()) TRY(worker_.push(homes, keys, home).wait());
    TRY(worker_.barrier());
    if (!keys.empty()) TRY(worker_.pull(homes, keys, home).wait());
    std::ranges::transform(home, blocks.begin(), [](float block) { return static_cast<uint32_t>(block); });
  }
  return blocks;
}

// Of each key: whether it is not left out.
Result<std::vector<uint8_t>> BatchTrainer::wanted(const Localizer& localizer) {
  if (settings_.tail.frequency == 0) return std::vector<uint8_t>(localizer.keys().size(), 1);
  // As many cells as for the keys of all workers, though some have the same.
  const std::string name = named("counts");
  TRY(worker_.tally(name, std::vector<Addend>{{0, static_cast<double>(localizer.keys().size())}}, 0, 0));
  TRY(worker_.barrier());
  const double keys = TRY(worker_.tally(name, {}, 0, 1)).front();
  const auto cells = static_cast<uint64_t>(std::min(std::ceil(keys * settings_.tail_cells_per_key), 1e12));
  TailFilter filter = TRY(TailFilter::make(worker_, name, settings_.tail, cells));
  TRY(filter.add(localizer.keys(), localizer.columns()));
  TRY(worker_.barrier());
  return filter.is_common(localizer.keys());
}

// Several workers may have a key: the first of them to come speaks for it.
Result<std::vector<uint8_t>> BatchTrainer::find_keepers(std::span<const Key> keys) {
  holders_ = TRY(worker_.create_table({.name = named("holders"), .updater = {"add"}}));
  const std::vector<float> ones(keys.size(), 1);
  std::vector<float> order(keys.size());
  if (!keys.empty()) TRY(worker_.push_pull(holders_, keys, ones, order).wait());
  std::vector<uint8_t> kept(keys.size());
  std::ranges::transform(order, kept.begin(), [](float one) { return one == 1 ? 1 : 0; });
  return kept;
}

Result<> BatchTrainer::start_weights() {
  std::vector<Key> keys;  // as they increase
  for (const uint32_t column : by_key_) keys.push_back(descent().keys()[column]);
  std::vector<float> weights(keys.size());
  written_.assign(keys.size(), 0);
  if (loads_ == 0 && settings_.start.files.empty()) {
    for (size_t i = 0; i < keys.size(); ++i) weights[i] = start_weight(settings_.start, keys[i]);
  } else {
    Table from = weights_;
    if (loads_ == 0) {
      const LoadedModel model = TRY(load_model(worker_, store_, TRY(find_files(store_, settings_.start.files))));
      if (model.embeddings > 0)
        return invalid("darlin.init_w: this model has embeddings, which batch training has not");
      from = model.tables.weights;
    }
    if (!keys.empty()) TRY(worker_.pull(from, keys, weights).wait());
    if (loads_ > 0) {
      for (size_t i = 0; i < keys.size(); ++i) written_[by_key_[i]] = weights[i];
    }
  }
  std::vector<float> by_column(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) by_column[by_key_[i]] = weights[i];
  descent().set_weights(by_column);
  return write_weights();
}

Result<BatchTrainer::Outcome> BatchTrainer::iterate() {
  threshold_ = kNoFilter;
  bool all_active = true;
  double before = 0;  // objective
  double momentum = 1;
  if (blocks_ && loads_ == 0 && !settings_.prior_groups.empty()) {
    TRY(sweep(plan_->prior_order(settings_.prior_groups, settings_.prior_sweeps, settings_.random_order), 0));
  }
  for (bool first = true; progress_.iteration < settings_.iterations; first = false) {
    const Time begin = clock_.now();
    if (newton_) {
      TRY(step_together());
    } else {
      TRY(sweep(plan_->order(progress_.iteration, settings_.random_order), settings_.max_delay));
    }
    if (TRY(sum_up()) == Outcome::kWorkerLost) return Outcome::kWorkerLost;
    progress_.relative = first ? 1 : before / progress_.objective - 1;
    before = progress_.objective;
    tell(BatchProgress::Stage::kIteration, begin);
    ++progress_.iteration;
    if (settings_.save_every > 0 && settings_.model && progress_.iteration % settings_.save_every == 0) {
      TRY(save(fmt::format("{}_it_{}", settings_.model->prefix, progress_.iteration - 1)));
    }
    // What the filter has left out may have become wanted: it is over only when nothing moves with all features.
    const bool settled = std::abs(progress_.relative) <= settings_.epsilon;
    if (settled && all_active) {
      progress_.converged = true;
      return Outcome::kDone;
    }
    if (newton_) continue;
    // Nesterov's sequence, begun anew whenever it went too far (O'Donoghue and Candes, 2015).
    const double next = progress_.relative < 0 ? 1 : (1 + std::sqrt(1 + 4 * momentum * momentum)) / 2;
    blocks_->extrapolate(progress_.relative < 0 ? 0 : (momentum - 1) / next);
    momentum = next;
    all_active = settled;
    if (settled) blocks_->activate_all();
    threshold_ = settled ? kNoFilter : next_threshold_;
  }
  return Outcome::kDone;
}

// Newton's method: all weights at once.
Result<> BatchTrainer::step_together() {
  if (cancelled_()) return job_failed("interrupted");
  std::vector<float> model(newton_->model_size());
  if (model.empty()) return {};
  const auto add_up = [&](const Table& table, std::span<float> numbers) -> Result<> {
    const Ticket pushed = worker_.push_rows(table, 0, numbers);
    (void)worker_.clock();
    const auto pulled = worker_.pull_rows(table, 0, numbers).wait();
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

// Goes over blocks. A block is begun when all before the last `max_delay` are finished.
Result<> BatchTrainer::sweep(std::span<const uint32_t> blocks, uint32_t max_delay) {
  for (const uint32_t block : blocks) {
    if (cancelled_()) return job_failed("interrupted");
    while (tasks_.size() > max_delay) TRY(finish_oldest());
    TRY(begin(block));
  }
  while (!tasks_.empty()) TRY(finish_oldest());
  return {};
}

Result<> BatchTrainer::begin(uint32_t block) {
  const Time begin = clock_.now();
  Task& task = tasks_.emplace_back();
  task.columns = blocks_->active_columns(block);
  task.sums.resize(2 * task.columns.size());
  blocks_->gradient(task.columns, task.sums);
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
    blocks_->update(task.columns, task.sums, threshold_);
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
  // One is added to tell zero from nobody.
  const std::vector<Addend> addends = {{kSumLoss, descent().loss()},
                                       {kSumExamples, static_cast<double>(descent().examples())},
                                       {kSumPenalty, penalty},
                                       {kSumKeys, static_cast<double>(keys)},
                                       {kSumNonzero, static_cast<double>(nonzero)},
                                       {kSumActive, static_cast<double>(active)},
                                       {kOfWorkers + 2 * rank, 1 + std::exchange(busy_seconds_, 0)},
                                       {kOfWorkers + 2 * rank + 1, blocks_ ? blocks_->take_violation() : 0}};
  const std::string name = fmt::format("{} of {}", progress_.iteration, named("iteration"));
  TRY(worker_.tally(name, addends, 0, 0));
  TRY(worker_.barrier());
  const auto sums = TRY(worker_.tally(name, {}, 0, kOfWorkers + 2 * kRanksMax));
  if (sums[kSumExamples] < static_cast<double>(progress_.examples)) return Outcome::kWorkerLost;

  progress_.objective = sums[kSumLoss] + sums[kSumPenalty];
  progress_.keys = static_cast<uint64_t>(sums[kSumKeys]);
  progress_.nonzero = static_cast<uint64_t>(sums[kSumNonzero]);
  progress_.active = static_cast<uint64_t>(sums[kSumActive]);
  progress_.threshold = threshold_;
  progress_.busy_min = std::numeric_limits<double>::max();
  progress_.busy_max = 0;
  double violation = 0;
  for (uint32_t i = 0; i < kRanksMax; ++i) {
    const double busy = sums[kOfWorkers + 2 * i] - 1;
    if (busy < 0) continue;
    progress_.busy_min = std::min(progress_.busy_min, busy);
    progress_.busy_max = std::max(progress_.busy_max, busy);
    violation = std::max(violation, sums[kOfWorkers + 2 * i + 1]);
  }
  next_threshold_ = violation / static_cast<double>(progress_.examples) * settings_.kkt_ratio;
  return Outcome::kDone;
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
  TRY(save_model(worker_, {.weights = weights_}, store_, {settings_.model->format, prefix}));
  return {};
}

}  // namespace pscloud

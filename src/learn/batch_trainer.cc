#include "learn/batch_trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
#include "base/random.h"
#include "io/file_pattern.h"
#include "learn/data_selection.h"
#include "learn/model_files.h"
#include "learn/shared_work.h"

namespace pscloud {
namespace {

constexpr double kNoFilter = 1e20;  // a threshold that no gradient is below

// Places in the tally of what was loaded; behind them two for each group.
enum LoadPlace : uint32_t { kLoadedExamples, kLoadedBadLines, kLoadedGroups };
constexpr uint32_t kGroupNumbers = 1 << 16;

// Places in the tally of an iteration; behind them two for each worker, since there are no tallies of maxima.
enum IterationPlace : uint32_t { kSumLoss, kSumExamples, kSumPenalty, kSumKeys, kSumNonzero, kSumActive, kOfWorkers };
constexpr uint32_t kRanksMax = 1024;

void append_rows(RowBlock& block, const RowSlice& rows) {
  const size_t before = block.keys.size();
  const auto append = [](auto& all, const auto& more) { all.insert(all.end(), more.begin(), more.end()); };
  // Values and groups of some parts may be left out.
  if (block.values.empty() && !rows.values.empty()) block.values.assign(before, 1);
  append(block.values, rows.values);
  if (!block.values.empty() && rows.values.empty()) block.values.resize(before + rows.keys.size(), 1);
  if (block.groups.empty() && !rows.groups.empty()) block.groups.assign(before, 0);
  append(block.groups, rows.groups);
  if (!block.groups.empty()) block.groups.resize(before + rows.keys.size(), 0);
  append(block.labels, rows.labels);
  append(block.keys, rows.keys);
  for (const size_t end : rows.ends) block.ends.push_back(before + end - rows.first);
}

// What a block of rows adds to the tally: a group counts once for each example that has it.
std::vector<Addend> load_addends(const RowBlock& block, uint64_t bad_lines) {
  std::vector<GroupCount> groups(kGroupNumbers);
  std::vector<size_t> last_row(kGroupNumbers);  // counted from 1, that has it
  for (size_t row = 0; row < block.rows(); ++row) {
    for (size_t i = block.begin_of(row); i < block.ends[row]; ++i) {
      const uint16_t group = block.groups.empty() ? 0 : block.groups[i];
      ++groups[group].features;
      if (std::exchange(last_row[group], row + 1) != row + 1) ++groups[group].examples;
    }
  }
  std::vector<Addend> addends = {{kLoadedExamples, static_cast<double>(block.rows())},
                                 {kLoadedBadLines, static_cast<double>(bad_lines)}};
  for (uint32_t group = 0; group < kGroupNumbers; ++group) {
    if (groups[group].features == 0) continue;
    addends.push_back({kLoadedGroups + 2 * group, static_cast<double>(groups[group].features)});
    addends.push_back({kLoadedGroups + 2 * group + 1, static_cast<double>(groups[group].examples)});
  }
  return addends;
}

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
      reader_(store, make_parser(settings.format, settings.ignore_groups)) {}

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
  descent_.reset();
  rows_ = {};
  const std::vector<SelectedFile> files =
      TRY(select_files(worker_, store_, settings_.files, settings_.format, settings_.selection, "training_data"));
  const std::vector<std::string> items = items_of_pass(TRY(cut_into_items(store_, files)), settings_.selection, 1);
  const std::string pool = named("load");
  TRY(worker_.offer_work(pool, items));
  while (const auto item = TRY(worker_.take_work(pool))) TRY(load_item(*item));

  const auto sums = TRY(worker_.tally(pool, {}, 0, kLoadedGroups + 2 * kGroupNumbers));
  progress_.examples = static_cast<uint64_t>(sums[kLoadedExamples]);
  progress_.bad_lines = static_cast<uint64_t>(sums[kLoadedBadLines]);
  groups_.clear();
  for (uint32_t group = 0; group < kGroupNumbers; ++group) {
    const auto features = static_cast<uint64_t>(sums[kLoadedGroups + 2 * group]);
    if (features == 0) continue;
    groups_[static_cast<uint16_t>(group)] = {features, static_cast<uint64_t>(sums[kLoadedGroups + 2 * group + 1])};
  }
  tell(BatchProgress::Stage::kLoaded, begin);
  return {};
}

Result<> BatchTrainer::load_item(const WorkItem& item) {
  const ReadPart read = TRY(read_part(TRY(part_of_text(item.text))));
  // What another has done before is that one's.
  if (!TRY(worker_.finish_work(named("load"), item.number, load_addends(read.rows, read.bad_lines)))) return {};
  append_rows(rows_, slice_of(read.rows, 0, read.rows.rows()));
  if (rows_.keys.size() > Localizer::kFeaturesMax) {
    return invalid("a worker can hold {} features of examples: take more workers", Localizer::kFeaturesMax);
  }
  return {};
}

// From the cache if it is there.
Result<ReadPart> BatchTrainer::read_part(const FilePart& part) {
  std::optional<BlockCache> cache;
  std::string identity;
  if (!settings_.cache_prefix.empty()) {
    const char* const groups = settings_.ignore_groups ? "without groups" : "with groups";
    cache.emplace(store_, settings_.cache_prefix, fmt::format("{} {}", static_cast<int>(settings_.format), groups));
    if (auto found = TRY(cache->load(part))) return *std::move(found);
    identity = TRY(cache->identity_of(part));
  }
  const uint64_t bad_before = reader_.bad_lines();
  TRY(reader_.open(part));
  ReadPart read;
  while (true) {
    constexpr size_t kRowsAtATime = 10000;
    const RowSlice rows = TRY(reader_.next(kRowsAtATime));
    if (rows.rows() == 0) break;
    append_rows(read.rows, rows);
  }
  read.bad_lines = reader_.bad_lines() - bad_before;
  TRY(complaints_.complain(store_, reader_, settings_.strict));
  // A file with bad lines is read again, so that they are named again.
  if (cache && read.bad_lines == 0) {
    if (const auto saved = cache->save(part, identity, read); !saved) {
      log_warning("{}; what was read is not kept for the next time", saved.error().message);
    }
  }
  return read;
}

Result<> BatchTrainer::prepare() {
  const Time begin = clock_.now();
  // Who joins before all have passed this takes part in all that follows; who joins later finds that it began.
  TRY(worker_.clock().wait());
  plan_.emplace(groups_, settings_.blocks_per_feature);
  progress_.blocks = plan_->blocks();
  weights_ = TRY(worker_.create_table({.name = "weights", .updater = {"assign"}}));
  sums_ = TRY(worker_.create_table({.name = named("gradients"),
                                    .width = 2,
                                    .updater = {"assign"},
                                    .consistency = Consistency::sum(),
                                    .push_filters = settings_.filters}));
  TRY(arrange());
  std::vector<Key> keys;  // of the columns, in their order as keys
  for (const uint32_t column : by_key_) keys.push_back(descent_->keys()[column]);
  TRY(find_keepers(keys));
  TRY(start_weights(keys));
  tell(BatchProgress::Stage::kPrepared, begin);
  return {};
}

// Rows become columns, block by block.
Result<> BatchTrainer::arrange() {
  Localizer localizer;
  localizer.localize(rows_.keys);
  const std::span<const Key> keys = localizer.keys();
  std::vector<uint32_t> blocks(keys.size());
  for (size_t i = 0; i < rows_.keys.size(); ++i) {
    const uint32_t number = localizer.columns()[i];
    blocks[number] = plan_->block_of(rows_.groups.empty() ? 0 : rows_.groups[i], keys[number]);
  }
  // A key may stand in several groups: all workers must have it in the same block.
  if (groups_.size() > 1) {
    const Table homes = TRY(worker_.create_table({.name = named("blocks"), .updater = {"assign"}}));
    std::vector<float> home(blocks.begin(), blocks.end());
    if (!keys.empty()) TRY(worker_.push(homes, keys, home).wait());
    TRY(worker_.barrier());
    if (!keys.empty()) TRY(worker_.pull(homes, keys, home).wait());
    std::ranges::transform(home, blocks.begin(), [](float block) { return static_cast<uint32_t>(block); });
  }
  const std::vector<uint8_t> common = TRY(wanted(localizer));
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
  ColumnMatrix matrix = transpose(rows_, localizer.columns(), places, by_key_.size());
  for (size_t number = 0; number < keys.size(); ++number) {
    if (common[number] != 0) matrix.keys[places[number]] = keys[number];
  }
  descent_.emplace(std::move(matrix), rows_.labels, std::move(block_ends), settings_.descent);
  rows_ = {};
  return {};
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
Result<> BatchTrainer::find_keepers(std::span<const Key> keys) {
  const Table holders = TRY(worker_.create_table({.name = named("holders"), .updater = {"add"}}));
  const std::vector<float> ones(keys.size(), 1);
  std::vector<float> order(keys.size());
  if (!keys.empty()) TRY(worker_.push_pull(holders, keys, ones, order).wait());
  kept_.assign(keys.size(), 0);
  for (size_t i = 0; i < keys.size(); ++i) kept_[by_key_[i]] = order[i] == 1 ? 1 : 0;
  return {};
}

Result<> BatchTrainer::start_weights(std::span<const Key> keys) {
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
  descent_->set_weights(by_column);
  return write_weights();
}

Result<BatchTrainer::Outcome> BatchTrainer::iterate() {
  threshold_ = kNoFilter;
  bool all_active = true;
  double before = 0;  // objective
  double momentum = 1;
  if (loads_ == 0 && !settings_.prior_groups.empty()) {
    TRY(sweep(plan_->prior_order(settings_.prior_groups, settings_.prior_sweeps, settings_.random_order), 0));
  }
  for (bool first = true; progress_.iteration < settings_.iterations; first = false) {
    const Time begin = clock_.now();
    TRY(sweep(plan_->order(progress_.iteration, settings_.random_order), settings_.max_delay));
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
    // Nesterov's sequence, begun anew whenever it went too far (O'Donoghue and Candes, 2015).
    const double next = progress_.relative < 0 ? 1 : (1 + std::sqrt(1 + 4 * momentum * momentum)) / 2;
    descent_->extrapolate(progress_.relative < 0 ? 0 : (momentum - 1) / next);
    momentum = next;
    all_active = settled;
    if (settled) descent_->activate_all();
    threshold_ = settled ? kNoFilter : next_threshold_;
  }
  return Outcome::kDone;
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
  task.columns = descent_->active_columns(block);
  task.sums.resize(2 * task.columns.size());
  descent_->gradient(task.columns, task.sums);
  for (const uint32_t column : task.columns) task.keys.push_back(descent_->keys()[column]);
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
    descent_->update(task.columns, task.sums, threshold_);
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
    const double w = descent_->weight(column);
    penalty += rule.lambda1 * std::abs(w) + rule.lambda2 / 2 * w * w;
    ++keys;
    nonzero += w != 0 ? 1 : 0;
    active += descent_->is_active(column) ? 1 : 0;
  }
  const auto rank = static_cast<uint32_t>(worker_.rank());
  // One is added to tell zero from nobody.
  const std::vector<Addend> addends = {{kSumLoss, descent_->loss()},
                                       {kSumExamples, static_cast<double>(descent_->examples())},
                                       {kSumPenalty, penalty},
                                       {kSumKeys, static_cast<double>(keys)},
                                       {kSumNonzero, static_cast<double>(nonzero)},
                                       {kSumActive, static_cast<double>(active)},
                                       {kOfWorkers + 2 * rank, 1 + std::exchange(busy_seconds_, 0)},
                                       {kOfWorkers + 2 * rank + 1, descent_->take_violation()}};
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
    const auto weight = static_cast<float>(descent_->weight(column));
    if (kept_[column] == 0 || weight == written_[column]) continue;
    keys.push_back(descent_->keys()[column]);
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

// What batch training does before its first iteration: examples are loaded, arranged, and get their weights.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/hash.h"
#include "base/random.h"
#include "io/file_pattern.h"
#include "learn/batch_checkpoint.h"
#include "learn/batch_trainer.h"
#include "learn/data_selection.h"
#include "learn/model_files.h"
#include "learn/table_scan.h"

namespace pscloud {
namespace {

constexpr uint64_t kAgreedAtATime = 1 << 24;  // keys of all workers together, at most

float start_weight(const StartWeights& start, Key key) {
  if (start.stddev == 0) return static_cast<float>(start.mean);
  return Random(mix_key(key)).normal(static_cast<float>(start.mean), static_cast<float>(start.stddev));
}

}  // namespace

Result<> BatchTrainer::load() {
  const Time begin = clock_.now();
  blocks_.reset();
  newton_.reset();
  loaded_ = {};
  loaded_ = TRY(loader_.load(named("load"), [&](const ReadProgress& reading) {
    progress_.stage = BatchProgress::Stage::kLoading;
    progress_.reading = reading;
    show_(progress_);
  }));
  progress_.examples = loaded_.examples;
  progress_.bad_lines = loaded_.bad_lines;
  if (progress_.examples == 0) return no_examples("training_data", progress_.bad_lines);
  tell(BatchProgress::Stage::kLoaded, begin);
  return {};
}

Result<> BatchTrainer::prepare() {
  const Time begin = clock_.now();
  // Who joins before all have passed this takes part in all that follows; who joins later finds that it began.
  TRY(worker_.clock().wait());
  weights_ = TRY(worker_.create_table({.name = "weights", .updater = {"assign"}}));
  Localizer localizer;
  BatchExamples& mine = loaded_.mine;
  localizer.localize(mine.keys);
  mine.keys = {};
  for (uint32_t& number : mine.numbers) number = localizer.columns()[number];
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
  mine = {.parts = std::move(mine.parts), .rows = {}, .keys = {}, .numbers = {}};
  TRY(loads_ == 0 && resumed_ ? resume() : start_weights());
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
  const RowBlock& rows = loaded_.mine.rows;
  RowMatrix matrix;
  matrix.columns.reserve(loaded_.mine.numbers.size());
  matrix.values.reserve(rows.values.size());
  size_t feature = 0;
  for (const size_t end : rows.ends) {
    for (; feature < end; ++feature) {
      const size_t column = columns[loaded_.mine.numbers[feature]];
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
  ColumnMatrix matrix = transpose(loaded_.mine.rows, loaded_.mine.numbers, places, by_key_.size());
  for (size_t number = 0; number < keys.size(); ++number) {
    if (common[number] != 0) matrix.keys[places[number]] = keys[number];
  }
  kept_.assign(by_key_.size(), 0);
  for (size_t i = 0; i < by_key_.size(); ++i) kept_[by_key_[i]] = kept[i];
  // They are not needed any more, and the memory is.
  loaded_.mine.numbers = {};
  loaded_.mine.rows = {
      .labels = std::move(loaded_.mine.rows.labels), .ends = {}, .keys = {}, .values = {}, .groups = {}};
  blocks_.emplace(std::move(matrix), loaded_.mine.rows.labels, std::move(block_ends), settings_.descent);
  return {};
}

// Of each key: its block.
Result<std::vector<uint32_t>> BatchTrainer::find_blocks(const Localizer& localizer) {
  const std::span<const Key> keys = localizer.keys();
  const std::vector<uint16_t>& groups = loaded_.mine.rows.groups;
  std::vector<uint32_t> blocks(keys.size());
  for (size_t number = 0; groups.empty() && number < keys.size(); ++number) {
    blocks[number] = plan_->block_of(0, keys[number]);
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    const uint32_t number = loaded_.mine.numbers[i];
    blocks[number] = plan_->block_of(groups[i], keys[number]);
  }
  // A key may stand in several groups: all workers must have it in the same block.
  if (loaded_.groups.size() > 1) {
    std::vector<float> home(blocks.begin(), blocks.end());
    TRY(agree("blocks", keys, home));
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
  TRY(filter.add(localizer.keys(), loaded_.mine.numbers));
  TRY(worker_.barrier());
  return filter.is_common(localizer.keys());
}

// Several workers may have a key: one of them speaks for it.
Result<std::vector<uint8_t>> BatchTrainer::find_keepers(std::span<const Key> keys) {
  const auto mine = static_cast<float>(worker_.rank() + 1);
  std::vector<float> speakers(keys.size(), mine);
  holders_ = TRY(agree("holders", keys, speakers));
  std::vector<uint8_t> kept(keys.size());
  std::ranges::transform(speakers, kept.begin(), [&](float speaker) { return speaker == mine ? 1 : 0; });
  return kept;
}

// Of each key all workers that have it then have the same word: that of one of them, in each run of the same one.
Result<Table> BatchTrainer::agree(const char* name, std::span<const Key> keys, std::span<float> words) {
  const Table table =
      TRY(worker_.create_table({.name = named(name), .updater = {"assign"}, .consistency = Consistency::bsp()}));
  // Words wait at the servers until a clock ends: not all of them at once. All workers know the same number of
  // features.
  uint64_t features = 0;
  for (const auto& [group, count] : loaded_.groups) features += count.features;
  const uint64_t clocks = 1 + features / kAgreedAtATime;
  for (uint64_t clock = 0; clock < clocks; ++clock) {
    const size_t begin = keys.size() * clock / clocks;
    const size_t count = keys.size() * (clock + 1) / clocks - begin;
    if (count > 0) TRY(worker_.push(table, keys.subspan(begin, count), words.subspan(begin, count)).wait());
    TRY(worker_.clock().wait());
  }
  if (!keys.empty()) TRY(worker_.pull(table, keys, words).wait());
  return table;
}

// As they increase.
std::vector<Key> BatchTrainer::keys_in_order() const {
  std::vector<Key> keys;
  for (const uint32_t column : by_key_) keys.push_back(descent().keys()[column]);
  return keys;
}

Result<> BatchTrainer::start_weights() {
  const std::vector<Key> keys = keys_in_order();
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

Result<> BatchTrainer::resume() {
  TRY(restore_batch(worker_, store_, settings_.checkpoint, *resumed_, weights_,
                    {descent(), by_key_, loaded_.mine.parts}, progress_.examples));
  const std::vector<Key> keys = keys_in_order();
  std::vector<float> weights(keys.size());
  if (!keys.empty()) TRY(worker_.pull(weights_, keys, weights).wait());
  written_.assign(keys.size(), 0);
  for (size_t i = 0; i < keys.size(); ++i) written_[by_key_[i]] = weights[i];
  at_ = get_position(resumed_->batch());
  return {};
}

}  // namespace pscloud

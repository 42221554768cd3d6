#include "learn/online_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "learn/linear.h"
#include "learn/score_quality.h"

namespace pscloud {
namespace {

// Without a way out of the loop, so that the compiler makes it short.
bool are_finite(std::span<const float> numbers) {
  constexpr uint32_t kInfinity = 0x7f800000;  // without their sign, others that are no number are above it
  uint32_t largest = 0;
  for (const float number : numbers) largest = std::max(largest, std::bit_cast<uint32_t>(number) & 0x7fffffff);
  return largest < kInfinity;
}

}  // namespace

OnlineWorker::OnlineWorker(Worker& worker, const ModelTables& model, FileStore& store, const OnlineSettings& settings,
                           std::function<Result<>(const MinibatchReport&)> report, const CachePlace& cache)
    : worker_(worker),
      model_(model),
      settings_(settings),
      report_(std::move(report)),
      // Weights have no groups.
      reader_(store, settings.format, true, settings.minibatch, cache),
      seed_(settings.embeddings ? settings.embeddings->seed : 0),
      random_(seed_) {}

Result<> OnlineWorker::train(const FilePart& part, const DataPass& pass) {
  pass_ = pass;
  // Of each part its own, so that a run that is resumed draws the same; and in each pass others.
  random_ = Random(hash64(bytes_of(fmt::format("{} {}", pass.number, to_text(part)))) + seed_);
  auto trained = train_rows(part);
  // Weights that are still on their way need the memory that they go to.
  for (const auto& minibatch : begun_) {
    if (minibatch->pulled) (void)minibatch->pulled->wait();
    if (minibatch->pushed) (void)minibatch->pushed->wait();
  }
  begun_.clear();
  for (const auto& minibatch : done_) {
    if (minibatch->pushed && !minibatch->updated.empty()) (void)minibatch->pushed->wait();
  }
  return trained;
}

Result<> OnlineWorker::train_rows(const FilePart& part) {
  TRY(reader_.open(part, !pass_.last));
  while (true) {
    // Into the memory that was used last, which is still in the cache. Before an earlier minibatch is waited for.
    if (next_.memory().empty() && !spare_.empty()) {
      next_ = std::move(spare_.back());
      spare_.pop_back();
    }
    const bool more = TRY(reader_.next(next_));
    if (more) TRY(begin());
    // Of the time that a minibatch has until it is worked on, one half is for its weights to come, the other half for
    // its embeddings.
    if (begun_.size() > 1) TRY(ask_embeddings(*begun_[(begun_.size() - 1) / 2]));
    while (begun_.size() > (more ? settings_.max_delay : 0)) {
      TRY(finish(*begun_.front()));
      spare_.push_back(std::move(begun_.front()->read));
      done_.push_back(std::move(begun_.front()));
      begun_.pop_front();
    }
    if (!more) break;
  }
  for (const auto& minibatch : done_) {
    TRY(wait_for_push(*minibatch));
  }
  return {};
}

Result<> OnlineWorker::wait_for_push(Minibatch& minibatch) {
  if (!minibatch.pushed) return {};
  const Time begin = clock_.now();
  TRY(minibatch.pushed->wait());
  minibatch.pushed.reset();
  if (minibatch.embedded) TRY(minibatch.embedded->wait_for_push());
  push_seconds_ += in_seconds(clock_.now() - begin);
  if (minibatch.updated.empty()) return {};
  last_change_ = {};
  for (size_t i = 0; i < minibatch.updated.size(); ++i) {
    const double now = minibatch.updated[i];
    const double change = now - minibatch.weights[i];
    last_change_.change2 += change * change;
    last_change_.weights2 += now * now;
  }
  minibatch.updated.clear();
  return {};
}

Result<std::unique_ptr<OnlineWorker::Minibatch>> OnlineWorker::unused_minibatch() {
  if (done_.size() <= settings_.max_delay) {
    auto minibatch = std::make_unique<Minibatch>();
    if (model_.embedded) minibatch->embedded.emplace(worker_, *model_.embedded);
    return minibatch;
  }
  std::unique_ptr<Minibatch> minibatch = std::move(done_.front());
  done_.pop_front();
  TRY(wait_for_push(*minibatch));
  return minibatch;
}

// Asks for the weights. This thread's requests take effect in their order: they hold all that was pushed so far.
Result<> OnlineWorker::begin() {
  std::unique_ptr<Minibatch> minibatch = TRY(unused_minibatch());
  minibatch->read = std::move(next_);
  minibatch->pulled.reset();
  minibatch->asked_embeddings = false;
  minibatch->examples = &minibatch->read;
  if (tail_ != nullptr) TRY(drop_tail(*minibatch));
  const std::span<const Key> keys = minibatch->examples->keys();
  minibatch->weights.resize(keys.size());
  if (!keys.empty()) minibatch->pulled = worker_.pull(model_.weights, keys, minibatch->weights);
  if (minibatch->embedded) {
    const auto seen = pass_.first() ? minibatch->examples->columns() : std::span<const uint32_t>();
    minibatch->embedded->ask_counts(keys, seen);
  }
  begun_.push_back(std::move(minibatch));
  return {};
}

Result<> OnlineWorker::drop_tail(Minibatch& minibatch) {
  const NumberedRows& read = minibatch.read;
  const auto common =
      pass_.first() ? TRY(tail_->add_and_ask(read.keys(), read.columns())) : TRY(tail_->is_common(read.keys()));
  std::vector<uint32_t> places(common.size());
  kept_keys_.clear();
  for (size_t i = 0; i < common.size(); ++i) {
    places[i] = static_cast<uint32_t>(kept_keys_.size());
    if (common[i] != 0) kept_keys_.push_back(read.keys()[i]);
  }
  kept_columns_.clear();
  kept_.clear();
  const RowSlice& rows = read.rows();
  size_t feature = 0;
  for (const size_t end : rows.ends) {
    for (; feature < end; ++feature) {
      const uint32_t column = read.columns()[feature];
      if (common[column] == 0) continue;
      if (!rows.values.empty()) kept_.values.push_back(rows.values[feature]);
      kept_columns_.push_back(places[column]);
    }
    kept_.ends.push_back(kept_columns_.size());
  }
  const RowSlice left{
      .labels = rows.labels, .ends = kept_.ends, .first = 0, .keys = {}, .values = kept_.values, .groups = {}};
  minibatch.kept.assign(left, kept_keys_, kept_columns_);
  minibatch.examples = &minibatch.kept;
  return {};
}

// The weights tell which keys have one.
Result<> OnlineWorker::ask_embeddings(Minibatch& minibatch) {
  if (!minibatch.embedded || std::exchange(minibatch.asked_embeddings, true)) return {};
  if (minibatch.pulled) TRY(minibatch.pulled->wait());
  return minibatch.embedded->ask(minibatch.examples->keys(), minibatch.weights);
}

Result<> OnlineWorker::finish(Minibatch& minibatch) {
  const Time begin = clock_.now();
  if (minibatch.pulled) TRY(minibatch.pulled->wait());
  TRY(ask_embeddings(minibatch));
  if (minibatch.embedded) TRY(minibatch.embedded->wait());
  const double pull_seconds = in_seconds(clock_.now() - begin);
  const RowSlice& rows = minibatch.examples->rows();
  const std::span<const Key> keys = minibatch.examples->keys();
  const std::span<const uint32_t> columns = minibatch.examples->columns();
  const std::span<const float> labels = rows.labels;
  scores_.resize(labels.size());
  score_rows(rows, columns, minibatch.weights, scores_);
  if (minibatch.embedded) minibatch.embedded->add_interactions(rows, columns, scores_);
  MinibatchReport report{.examples = labels.size(),
                         .loss = 0,
                         .right = count_right(labels, scores_),
                         .auc = auc(labels, scores_),
                         .pull_seconds = pull_seconds,
                         .push_seconds = std::exchange(push_seconds_, 0)};
  report.loss = loss_and_slopes(settings_.loss, labels, scores_, scores_);  // slopes take the place of scores
  gradient_.resize(minibatch.weights.size());
  sum_gradient(rows, columns, scores_, gradient_);
  // The servers would refuse it, with less to say.
  const bool has_loss = std::isfinite(report.loss);
  if (!has_loss || !are_finite(gradient_)) {
    return job_failed(
        "the training diverges: the {} of a minibatch is no number any more; a smaller learning_rate.alpha helps, a "
        "smaller async_sgd.minibatch, or smaller values of features",
        has_loss ? "gradient" : "loss");
  }
  if (minibatch.pulled && steps_ == nullptr && std::exchange(measure_, false)) {
    minibatch.updated.resize(minibatch.weights.size());
    minibatch.pushed = worker_.push_pull(model_.weights, keys, gradient_, minibatch.updated);
  } else if (minibatch.pulled) {
    minibatch.pushed = worker_.push(model_.weights, keys, gradient_);
  }
  if (minibatch.embedded) {
    minibatch.embedded->push_gradient(rows, columns, scores_, *settings_.embeddings, random_);
  }
  if (steps_ != nullptr) steps_->end_minibatch();
  return report_(report);
}

}  // namespace pscloud

#include "learn/local_embeddings.h"

#include <utility>

namespace pscloud {
namespace {

// Of a request that may not have been made.
Result<> wait_once(std::optional<Ticket>& ticket) {
  if (!ticket) return {};
  return std::exchange(ticket, std::nullopt)->wait();
}

}  // namespace

LocalEmbeddings::~LocalEmbeddings() {
  (void)wait_once(counted_);
  (void)wait_once(pulled_);
}

void LocalEmbeddings::ask_counts(std::span<const Key> keys, std::span<const uint32_t> columns) {
  if (!tables_.counts || keys.empty()) return;
  counts_.resize(keys.size());
  if (columns.empty()) {
    counted_ = worker_.pull(*tables_.counts, keys, counts_);
    return;
  }
  seen_.assign(keys.size(), 0);
  for (const uint32_t column : columns) ++seen_[column];
  counted_ = worker_.push_pull(*tables_.counts, keys, seen_, counts_);
}

Result<> LocalEmbeddings::ask(std::span<const Key> keys, std::span<const float> weights) {
  TRY(wait_once(counted_));
  keys_.clear();
  places_.resize(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    const bool seen = !tables_.counts || counts_[i] > tables_.threshold;
    const bool has_one = seen && (!tables_.l1_shrink || weights[i] != 0);
    places_[i] = has_one ? static_cast<uint32_t>(keys_.size()) : Embeddings::kNone;
    if (has_one) keys_.push_back(keys[i]);
  }
  values_.resize(keys_.size() * tables_.embeddings.spec.width);
  if (!keys_.empty()) pulled_ = worker_.pull(tables_.embeddings, keys_, values_);
  return {};
}

Result<> LocalEmbeddings::wait() { return wait_once(pulled_); }

void LocalEmbeddings::add_interactions(const RowSlice& rows, std::span<const uint32_t> columns,
                                       std::span<float> scores) {
  if (keys_.empty()) return;
  sums_.resize(rows.rows() * tables_.embeddings.spec.width);
  pscloud::add_interactions(rows, columns, embeddings(), sums_, scores);
}

void LocalEmbeddings::push_gradient(const RowSlice& rows, std::span<const uint32_t> columns,
                                    std::span<const float> slopes, const EmbeddingSettings& settings, Random& random) {
  if (keys_.empty()) return;
  gradient_.resize(values_.size());
  sum_interaction_gradient(rows, columns, embeddings(), sums_, slopes, gradient_);
  finish_gradient(settings, values_, random, gradient_);
  pushed_ = worker_.push(tables_.embeddings, keys_, gradient_);
}

Result<> LocalEmbeddings::wait_for_push() { return wait_once(pushed_); }

}  // namespace pscloud

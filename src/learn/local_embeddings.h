#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
#include "data/row_block.h"
#include "learn/interactions.h"
#include "learn/model_tables.h"
#include "pscloud/worker.h"

namespace pscloud {

// The embeddings that some keys have: brings them from the servers, and takes their gradient back. For one minibatch
// after the other, whose keys are those of a Localizer; keeps its memory. Borrows what it is given. One thread.
class LocalEmbeddings {
 public:
  LocalEmbeddings(Worker& worker, const EmbeddingTables& tables) : worker_(worker), tables_(tables) {}
  // Waits for what is still on its way to its memory.
  ~LocalEmbeddings();
  LocalEmbeddings(const LocalEmbeddings&) = delete;
  LocalEmbeddings& operator=(const LocalEmbeddings&) = delete;

  // First: asks how often the keys were seen, if that matters, and does not wait. With `columns`, one for each feature,
  // these count as seen.
  void ask_counts(std::span<const Key> keys, std::span<const uint32_t> columns = {});
  // Then, when there are the weights of the same keys: asks for the embeddings of those that have one.
  Result<> ask(std::span<const Key> keys, std::span<const float> weights);
  // Then: they are there.
  Result<> wait();

  // Valid until the next minibatch, as are the next two.
  Embeddings embeddings() const { return {tables_.embeddings.spec.width, places_, values_}; }
  void add_interactions(const RowSlice& rows, std::span<const uint32_t> columns, std::span<float> scores);
  void push_gradient(const RowSlice& rows, std::span<const uint32_t> columns, std::span<const float> slopes,
                     const EmbeddingSettings& settings, Random& random);
  // The servers have the gradient.
  Result<> wait_for_push();

 private:
  Worker& worker_;
  const EmbeddingTables& tables_;
  std::vector<float> seen_;    // of each key: how often in this minibatch
  std::vector<float> counts_;  // of each key: how often so far
  std::vector<Key> keys_;      // that have an embedding
  std::vector<uint32_t> places_;
  std::vector<float> values_;
  std::vector<float> sums_;
  std::vector<float> gradient_;
  std::optional<Ticket> counted_;
  std::optional<Ticket> pulled_;
  std::optional<Ticket> pushed_;
};

}  // namespace pscloud

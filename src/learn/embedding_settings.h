#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/random.h"
#include "pscloud/error.h"
#include "pscloud/table.h"

namespace PS::LM {
class Config;
}

namespace pscloud {

// What a config says about the embeddings of a factorization machine, checked and in our own words.
struct EmbeddingSettings {
  TableSpec table = {};                  // of the embeddings
  std::optional<TableSpec> counts = {};  // how often each key was seen, if that must be known
  uint32_t threshold = 0;                // a key has an embedding if it was seen more often than this
  bool l1_shrink = true;                 // and its weight is not zero
  float lambda2 = 0;
  float grad_clipping = 0;  // 0: none
  float dropout = 0;
  uint64_t seed = 1;  // of dropout
};

// `weights` is the table of the weights, whose filters the embeddings go through too. kInvalid names the field that is
// wrong.
Result<EmbeddingSettings> embedding_settings(const PS::LM::Config& config, const TableSpec& weights);

// What is pushed of a minibatch's gradient: each number cut to what clipping allows, left out as dropout draws it, and
// with the slope of the penalty for its embedding.
void finish_gradient(const EmbeddingSettings& settings, std::span<const float> embeddings, Random& random,
                     std::span<float> gradient);

}  // namespace pscloud

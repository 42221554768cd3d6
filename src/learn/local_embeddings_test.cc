// A factorization machine trained by a worker, beside the same in plain loops.

#include "learn/local_embeddings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "engine/testing_cluster.h"
#include "io/memory_store.h"
#include "learn/online_worker.h"
#include "learn/table_scan.h"

namespace pscloud {
namespace {

using testing::ElementsAre;

constexpr size_t kDim = 3;
constexpr size_t kMinibatch = 20;
constexpr float kLambda1 = 3;  // such that some weights stay zero

struct PlainExample {
  double label;
  std::map<Key, double> features;
};

// Of 40 keys, those with small numbers are common. Clicks depend on pairs.
std::vector<PlainExample> some_plain_examples(int count, uint64_t seed) {
  Random random(seed);
  std::vector<PlainExample> examples;
  for (int i = 0; i < count; ++i) {
    PlainExample one;
    while (one.features.size() < 4) {
      const Key key = static_cast<Key>(40 * std::pow(random.uniform(), 3));
      one.features[key] = 0.25 * static_cast<double>(1 + random.below(8));
    }
    double score = 0;
    for (const auto& [key, value] : one.features) score += std::sin(static_cast<double>(key) * 1.7) * value;
    one.label = score * std::abs(score) + 2 * std::sin(static_cast<double>(i)) > 0 ? 1 : -1;
    examples.push_back(one);
  }
  return examples;
}

std::string text_of(const std::vector<PlainExample>& examples) {
  std::string text;
  for (const PlainExample& one : examples) {
    text += fmt::format("{}", one.label);
    for (const auto& [key, value] : one.features) text += fmt::format(" {}:{}", key, value);
    text += '\n';
  }
  return text;
}

// A sequential factorization machine in double.
class PlainMachine {
 public:
  struct Parameter {
    double w = 0, z = 0, s = 0, count = 0;
    std::vector<double> v, n;  // none as long as it has never had an embedding
  };

  PlainMachine(const EmbeddingSettings& settings, std::map<Key, std::vector<double>> initial)
      : settings_(settings), initial_(std::move(initial)) {}

  void learn(std::span<const PlainExample> minibatch, bool count) {
    for (const PlainExample& one : minibatch) {
      for (const auto& [key, value] : one.features) model_[key].count += count;
    }
    std::map<Key, double> weight_gradient;
    std::map<Key, std::vector<double>> gradient;
    for (const PlainExample& one : minibatch) {
      const double slope = -one.label / (1 + std::exp(one.label * score(one)));
      for (const auto& [key, x] : one.features) {
        weight_gradient[key] += slope * x;
        if (!is_embedded(key)) continue;
        auto& of_key = gradient.try_emplace(key, kDim, 0.0).first->second;
        for (const auto& [other, y] : one.features) {
          if (other == key || !is_embedded(other)) continue;
          for (size_t k = 0; k < kDim; ++k) of_key[k] += slope * x * y * embedding(other)[k];
        }
      }
    }
    for (auto& [key, g] : gradient) update_embedding(model_[key], embedding(key), g);
    for (const auto& [key, g] : weight_gradient) update_weight(model_[key], g);
  }

  const std::map<Key, Parameter>& model() const { return model_; }

 private:
  bool is_embedded(Key key) {
    const Parameter& parameter = model_[key];
    return parameter.count > settings_.threshold && (!settings_.l1_shrink || parameter.w != 0);
  }
  const std::vector<double>& embedding(Key key) { return model_[key].v.empty() ? initial_.at(key) : model_[key].v; }
  double score(const PlainExample& one) {
    double sum = 0;
    for (const auto& [key, x] : one.features) {
      sum += model_[key].w * x;
      for (const auto& [other, y] : one.features) {
        if (other <= key || !is_embedded(key) || !is_embedded(other)) continue;
        for (size_t k = 0; k < kDim; ++k) sum += embedding(key)[k] * embedding(other)[k] * x * y;
      }
    }
    return sum;
  }
  void update_embedding(Parameter& parameter, std::vector<double> v, const std::vector<double>& gradient) {
    parameter.n.resize(kDim);
    for (size_t k = 0; k < kDim; ++k) {
      const double most = settings_.grad_clipping;
      const double g = std::clamp(gradient[k], -most, most) + settings_.lambda2 * v[k];
      parameter.n[k] += g * g;
      v[k] -= 0.25 / (std::sqrt(parameter.n[k]) + 1) * g;
    }
    parameter.v = std::move(v);
  }
  static void update_weight(Parameter& parameter, double g) {
    const double s = std::sqrt(parameter.s * parameter.s + g * g);
    parameter.z += g - (s - parameter.s) / 0.1 * parameter.w;
    parameter.s = s;
    const double z = parameter.z;
    parameter.w = std::abs(z) <= kLambda1 ? 0 : (std::copysign(kLambda1, z) - z) / ((1 + s) / 0.1);
  }

  const EmbeddingSettings& settings_;
  std::map<Key, std::vector<double>> initial_;
  std::map<Key, Parameter> model_;
};

OnlineSettings machine_settings() {
  OnlineSettings settings;
  settings.table = {.name = "weights", .updater = {"ftrl", {{"alpha", 0.1f}, {"beta", 1}, {"lambda1", kLambda1}}}};
  settings.minibatch = kMinibatch;
  settings.embeddings = EmbeddingSettings{
      .table = {.name = "embeddings",
                .width = kDim,
                .updater = {"adagrad", {{"learning_rate", 0.25f}, {"epsilon", 1}}},
                .initial = {-0.3f, 0.3f, 5}},
      .counts = TableSpec{.name = "counts"},
      .threshold = 25,
      .lambda2 = 0.1f,
      .grad_clipping = 2,
  };
  return settings;
}

const auto kIgnore = [](const MinibatchReport&) { return Result<>(); };

TEST(LocalEmbeddings, TheyTrainAsASequentialLoopDoesAndOnlyKeysOfTheRuleHaveOne) {
  for (const bool l1_shrink : {true, false}) {
    const std::vector<PlainExample> examples = some_plain_examples(600, 3);
    MemoryStore store({{"f", text_of(examples)}}, 1 << 20);
    OnlineSettings settings = machine_settings();
    settings.embeddings->l1_shrink = l1_shrink;
    const TestingCluster cluster({.servers = 2});
    const auto worker = cluster.worker();
    const ModelTables tables = create_model(*worker, settings.table, settings.embeddings).value();

    std::map<Key, std::vector<double>> initial;
    for (Key key = 0; key < 40; ++key) {
      std::vector<float> values(kDim);
      ASSERT_TRUE(worker->pull(tables.embedded->embeddings, std::vector<Key>{key}, values).wait());
      initial[key].assign(values.begin(), values.end());
    }
    PlainMachine plain(*settings.embeddings, initial);
    OnlineWorker online(*worker, tables, store, settings, kIgnore);
    for (const uint32_t pass : {1, 2}) {
      ASSERT_TRUE(online.train({"f"}, {.number = pass}));
      for (size_t i = 0; i < examples.size(); i += kMinibatch) {
        plain.learn(std::span(examples).subspan(i, kMinibatch), pass == 1);
      }
    }

    std::set<Key> expected;
    size_t zero_weights = 0;
    for (const auto& [key, parameter] : plain.model()) {
      if (!parameter.v.empty()) expected.insert(key);
      zero_weights += parameter.w == 0;
      float weight = 0;
      ASSERT_TRUE(worker->pull(tables.weights, std::vector<Key>{key}, {&weight, 1}).wait());
      EXPECT_NEAR(weight, parameter.w, 1e-4) << key;
    }
    EXPECT_GT(zero_weights, 2u);
    EXPECT_LT(expected.size(), plain.model().size());
    std::set<Key> found;
    for (int part = 0; part < worker->parts(); ++part) {
      ASSERT_TRUE(scan_part(*worker, tables.embedded->embeddings, part, ScanKind::kAll,
                            [&](const ScannedRows& rows) -> Result<> {
                              for (size_t i = 0; i < rows.keys.size(); ++i) {
                                found.insert(rows.keys[i]);
                                const auto& parameter = plain.model().at(rows.keys[i]);
                                if (parameter.v.empty()) continue;  // which fails below
                                for (size_t k = 0; k < kDim; ++k) {
                                  EXPECT_NEAR(rows.floats[i * kDim + k], parameter.v[k], 1e-3) << rows.keys[i];
                                }
                              }
                              return {};
                            }));
    }
    EXPECT_EQ(found, expected);
    EXPECT_TRUE(worker->leave());
  }
}

TEST(LocalEmbeddings, KeysAreCountedByAllWorkersAndInTheFirstPassOnly) {
  MemoryStore store({{"f", std::string("1 1:1 2:1\n-1 1:1\n1 1:1 3:1 1:1\n")}});
  const OnlineSettings settings = machine_settings();
  const TestingCluster cluster({.servers = 2, .workers = 3});
  cluster.run_workers([&](Worker& worker) {
    const ModelTables tables = create_model(worker, settings.table, settings.embeddings).value();
    OnlineWorker online(worker, tables, store, settings, kIgnore);
    EXPECT_TRUE(online.train({"f"}));
    EXPECT_TRUE(online.train({"f"}, {.number = 2}));
    EXPECT_TRUE(worker.barrier());
    std::vector<float> counts(4);
    EXPECT_TRUE(worker.pull(*tables.embedded->counts, std::vector<Key>{1, 2, 3, 4}, counts).wait());
    EXPECT_THAT(counts, ElementsAre(12, 3, 3, 0));
  });
}

TEST(LocalEmbeddings, DropoutDrawsOthersInEachPassAndTheSameInEachRun) {
  MemoryStore store({{"f", text_of(some_plain_examples(200, 7))}}, 1 << 20);
  OnlineSettings settings = machine_settings();
  settings.embeddings->dropout = 0.5f;
  const auto embeddings_after = [&](uint32_t pass) {
    const TestingCluster cluster({.servers = 1});
    const auto worker = cluster.worker();
    const ModelTables tables = create_model(*worker, settings.table, settings.embeddings).value();
    OnlineWorker online(*worker, tables, store, settings, kIgnore);
    // Keys have to be there, the same in each run.
    EXPECT_TRUE(online.train({"f"}));
    EXPECT_TRUE(online.train({"f"}, {.number = pass}));
    std::vector<Key> keys(40);
    std::iota(keys.begin(), keys.end(), 0);
    std::vector<float> values(keys.size() * kDim);
    EXPECT_TRUE(worker->pull(tables.embedded->embeddings, keys, values).wait());
    EXPECT_TRUE(worker->leave());
    return values;
  };
  const std::vector<float> second = embeddings_after(2);
  EXPECT_EQ(embeddings_after(2), second);
  EXPECT_NE(embeddings_after(3), second);
}

TEST(LocalEmbeddings, WithDelayEveryExampleCountsOnceToo) {
  MemoryStore store({{"f", text_of(some_plain_examples(1000, 7))}}, 1 << 20);
  OnlineSettings settings = machine_settings();
  settings.max_delay = 3;
  settings.embeddings->dropout = 0.5f;
  const TestingCluster cluster({.servers = 2});
  const auto worker = cluster.worker();
  const ModelTables tables = create_model(*worker, settings.table, settings.embeddings).value();
  double loss[3] = {};
  for (double& sum : loss) {
    uint64_t examples = 0;
    OnlineWorker online(*worker, tables, store, settings, [&](const MinibatchReport& report) -> Result<> {
      examples += report.examples;
      sum += report.loss;
      return {};
    });
    ASSERT_TRUE(online.train({"f"}));
    EXPECT_EQ(examples, 1000u);
  }
  EXPECT_LT(loss[1], loss[0]);
  EXPECT_LT(loss[2], loss[1]);
  const auto rows = count_rows(*worker, tables.embedded->embeddings).value();
  EXPECT_GT(rows.rows, 10u);
  EXPECT_EQ(rows.nonzero, rows.rows);
  EXPECT_TRUE(worker->leave());
}

}  // namespace
}  // namespace pscloud

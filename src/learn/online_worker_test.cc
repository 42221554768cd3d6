#include "learn/online_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>

#include "base/random.h"
#include "io/memory_store.h"
#include "io/test_compress.h"
#include "pscloud/node.h"

namespace pscloud {
namespace {

// A whole job in this process: one server, one worker.
class OnlineWorkerTest : public testing::Test {
 protected:
  OnlineWorkerTest() {
    NodeOptions options;
    options.local = make_local_network();
    options.scheduler = "inproc:scheduler";
    options.role = Role::kScheduler;
    scheduler_ = Node::start(options).value();
    options.role = Role::kServer;
    server_ = Node::start(options).value();
    options.role = Role::kWorker;
    worker_ = Worker::join(options).value();
    settings_.table = {.name = "weights",
                       .updater = {"ftrl", {{"alpha", 0.1f}, {"beta", 1}, {"lambda1", 0.5f}, {"lambda2", 0.1f}}}};
    settings_.minibatch = 50;
  }
  ~OnlineWorkerTest() override {
    EXPECT_TRUE(worker_->leave());
    EXPECT_TRUE(scheduler_->wait());
  }

  // Lines of which the sign of the sum of their features' secret weights is the label.
  static std::string some_examples(int count, uint64_t seed) {
    Random random(seed);
    std::string text;
    for (int i = 0; i < count; ++i) {
      std::set<Key> keys;
      while (keys.size() < 5) keys.insert(random.below(40));
      double score = 0;
      for (const Key key : keys) score += std::sin(static_cast<double>(key) * 1.7);
      text += score > 0 ? "1" : "-1";
      for (const Key key : keys) text += fmt::format(" {}:1", key);
      text += '\n';
    }
    return text;
  }

  std::vector<float> weights(const Table& table, const std::vector<Key>& keys) {
    std::vector<float> out(keys.size());
    EXPECT_TRUE(worker_->pull(table, keys, out).wait());
    return out;
  }

  std::unique_ptr<Node> scheduler_;
  std::unique_ptr<Node> server_;
  std::unique_ptr<Worker> worker_;
  OnlineSettings settings_;
};

TEST_F(OnlineWorkerTest, LearnsWhatSeparatesTheExamples) {
  MemoryStore store({{"f", some_examples(4000, 1)}}, 1 << 20);
  const Table table = worker_->create_table(settings_.table).value();
  const ModelTables tables{.weights = table};
  std::vector<MinibatchReport> reports;
  OnlineWorker online(*worker_, tables, store, settings_, [&](const MinibatchReport& r) -> Result<> {
    reports.push_back(r);
    return {};
  });
  ASSERT_TRUE(online.train({"f"}));
  ASSERT_EQ(reports.size(), 80u);
  EXPECT_DOUBLE_EQ(reports.front().loss, 50 * std::log(2.0));  // all weights are 0
  EXPECT_EQ(reports.front().auc, 0.5);
  double loss = 0;
  double right = 0;
  for (size_t i = 60; i < 80; ++i) {
    EXPECT_EQ(reports[i].examples, 50u);
    EXPECT_GT(reports[i].auc, 0.95);
    loss += reports[i].loss / 1000;
    right += static_cast<double>(reports[i].right) / 1000;
  }
  EXPECT_LT(loss, 0.4);
  EXPECT_GT(right, 0.9);
}

// The same by a plain loop over the text's own order.
TEST_F(OnlineWorkerTest, AloneItTrainsAsASequentialLoopDoes) {
  const std::string text = some_examples(500, 2);
  MemoryStore store({{"f", text}}, 1 << 20);
  const Table table = worker_->create_table(settings_.table).value();
  const ModelTables tables{.weights = table};
  OnlineWorker online(*worker_, tables, store, settings_, [](const MinibatchReport&) { return Result<>(); });
  ASSERT_TRUE(online.train({"f"}));
  ASSERT_TRUE(online.train({"f"}));

  struct Weight {
    double w = 0, z = 0, s = 0;
  };
  std::map<Key, Weight> model;
  RowBlock block;
  BadLines bad;
  const std::string padded = text + std::string(kScanPadding, '\n');
  make_parser(ExampleFormat::kLibsvm, true)->parse(std::string_view(padded).substr(0, text.size()), block, bad);
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t first = 0; first < block.rows(); first += 50) {
      std::map<Key, double> gradient;
      for (size_t row = first; row < first + 50; ++row) {
        double score = 0;
        for (const Key key : block.keys_of(row)) score += model[key].w;
        const double y = block.labels[row];
        for (const Key key : block.keys_of(row)) gradient[key] -= y / (1 + std::exp(y * score));
      }
      for (const auto& [key, g] : gradient) {
        Weight& weight = model[key];
        const double s = std::sqrt(weight.s * weight.s + g * g);
        weight.z += g - (s - weight.s) / 0.1 * weight.w;
        weight.s = s;
        weight.w = std::abs(weight.z) <= 0.5 ? 0 : (std::copysign(0.5, weight.z) - weight.z) / ((1 + s) / 0.1 + 0.1);
      }
    }
  }
  std::vector<Key> keys;
  for (const auto& [key, weight] : model) keys.push_back(key);
  const std::vector<float> trained = weights(table, keys);
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_NEAR(trained[i], model[keys[i]].w, 1e-4) << keys[i];
}

TEST_F(OnlineWorkerTest, EveryExampleCountsOnceWithAnyDelay) {
  // A loss of (score - y)^2 / 2 whose slopes are -y while weights stay 0, and servers that add: sums of labels.
  std::string text;
  for (int i = 0; i < 1234; ++i) text += fmt::format("{} {}:1\n", i % 7, i % 10);
  MemoryStore store({{"f", text}}, 1 << 20);
  settings_.loss = Loss::kSquare;
  for (const uint32_t delay : {0u, 1u, 5u}) {
    settings_.max_delay = delay;
    settings_.table = {.name = fmt::format("sums_{}", delay),
                       .updater = {"sgd", {{"learning_rate", 1e-20f}}}};  // scores stay 0 in float32's sight
    const Table table = worker_->create_table(settings_.table).value();
    const ModelTables tables{.weights = table};
    uint64_t examples = 0;
    OnlineWorker online(*worker_, tables, store, settings_, [&](const MinibatchReport& r) -> Result<> {
      examples += r.examples;
      return {};
    });
    ASSERT_TRUE(online.train({"f"}));
    EXPECT_EQ(examples, 1234u);
    const std::vector<float> sums = weights(table, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    for (size_t key = 0; key < 10; ++key) {
      double expected = 0;
      for (size_t i = key; i < 1234; i += 10) expected += static_cast<double>(i % 7);
      EXPECT_NEAR(sums[key] * 1e20, expected, 1e-3 * expected);
    }
  }
}

TEST_F(OnlineWorkerTest, APartThatBreaksOffDoesNotSpoilTheNext) {
  const std::string whole = some_examples(2000, 3);
  const std::string packed = gzip(some_examples(150000, 4));  // more than is read at once
  MemoryStore store({{"broken", packed.substr(0, packed.size() / 2)}, {"f", whole}}, 1 << 20);
  settings_.max_delay = 3;
  const Table table = worker_->create_table(settings_.table).value();
  const ModelTables tables{.weights = table};
  uint64_t examples = 0;
  OnlineWorker online(*worker_, tables, store, settings_, [&](const MinibatchReport& r) -> Result<> {
    examples += r.examples;
    return {};
  });
  EXPECT_EQ(online.train({"broken"}).error().code, Code::kCorrupt);
  EXPECT_GT(examples, 0u);
  EXPECT_LT(examples, 150000u);
  examples = 0;
  ASSERT_TRUE(online.train({"f"}));
  EXPECT_EQ(examples, 2000u);
}

TEST_F(OnlineWorkerTest, LinesWithoutFeaturesAndBadOnesDoNoHarm) {
  const std::string text = "1\n-1\nx y\n";
  MemoryStore store({{"f", text}});
  const Table table = worker_->create_table(settings_.table).value();
  const ModelTables tables{.weights = table};
  uint64_t examples = 0;
  OnlineWorker online(*worker_, tables, store, settings_, [&](const MinibatchReport& r) -> Result<> {
    examples += r.examples;
    return {};
  });
  ASSERT_TRUE(online.train({"f"}));
  EXPECT_EQ(examples, 2u);
  EXPECT_EQ(online.examples().bad_lines().count, 1u);
  EXPECT_EQ(online.train({"absent"}).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace pscloud

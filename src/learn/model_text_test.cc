#include "learn/model_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <map>
#include <vector>

#include "base/random.h"
#include "io/memory_store.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

Result<std::map<Key, float>> read_model(const std::string& text) {
  MemoryStore store({{"model_S0", text}});
  std::map<Key, float> model;
  TRY(read_model_text(store, "model_S0", [&](auto keys, auto weights, const Embeddings&) -> Result<> {
    for (size_t i = 0; i < keys.size(); ++i) model[keys[i]] = weights[i];
    return {};
  }));
  return model;
}

TEST(ModelText, WeightsThatAreNotZeroAreLines) {
  MemoryStore store;
  ModelTextWriter writer(store.create("model_S0").value());
  ASSERT_TRUE(
      writer.write(std::vector<Key>{7, 8, std::numeric_limits<Key>::max()}, std::vector<float>{0.5f, 0, -2e-5f}));
  ASSERT_TRUE(writer.commit());
  EXPECT_EQ(writer.weights(), 2u);
  EXPECT_EQ(store.get("model_S0"), "7\t0.5\n18446744073709551615\t-2e-05\n");
}

TEST(ModelText, ComesBackToTheLastBit) {
  Random random(5);
  std::vector<Key> keys;
  std::vector<float> weights;
  while (keys.size() < 100000) {
    const auto weight = std::bit_cast<float>(static_cast<uint32_t>(random.next()));
    if (!std::isfinite(weight) || weight == 0) continue;
    keys.push_back(random.next());
    weights.push_back(weight);
  }
  MemoryStore store({}, 1 << 20);
  ModelTextWriter writer(store.create("m").value());
  ASSERT_TRUE(writer.write(std::span(keys).first(50000), std::span(weights).first(50000)));
  ASSERT_TRUE(writer.write(std::span(keys).subspan(50000), std::span(weights).subspan(50000)));
  ASSERT_TRUE(writer.commit());
  size_t next = 0;
  ASSERT_TRUE(read_model_text(store, "m", [&](auto some, auto values, const Embeddings&) -> Result<> {
    for (size_t i = 0; i < some.size(); ++i, ++next) {
      EXPECT_EQ(some[i], keys[next]);
      EXPECT_EQ(values[i], weights[next]);
    }
    return {};
  }));
  EXPECT_EQ(next, keys.size());
}

TEST(ModelText, BlanksAndEmptyLinesDoNotMatterAndTheLastOfAKeyWins) {
  const std::map<Key, float> expected{{1, 3}, {2, -0.5f}};
  EXPECT_EQ(read_model("1\t2\r\n\n 2   -.5 \n1 3").value(), expected);
  EXPECT_TRUE(read_model("").value().empty());
}

TEST(ModelText, ALineThatIsNoneIsNamed) {
  for (const std::string line : {"x\t1", "1", "1\tx", "1:2", "-1\t2", "1\t2x", "1\tnan", "99999999999999999999\t1"}) {
    const auto model = read_model("5\t1\n" + line + "\n6\t1\n");
    ASSERT_FALSE(model) << line;
    EXPECT_EQ(model.error().code, Code::kCorrupt);
    EXPECT_THAT(model.error().message, HasSubstr("model_S0:2: is no line of a model")) << line;
  }
}

// Lines as they are written again.
Result<std::string> written_again(const std::string& text) {
  MemoryStore store({{"in", text}});
  ModelTextWriter writer(TRY(store.create("out")));
  TRY(read_model_text(store, "in", [&](auto keys, auto weights, const Embeddings& embeddings) -> Result<> {
    return writer.write(keys, weights, embeddings);
  }));
  TRY(writer.commit());
  return store.get("out");
}

TEST(ModelText, KeysMayHaveAnEmbedding) {
  const std::string text = "7\t0.5\t1\t-2.5\t0\n8\t1e-05\n9\t0\t0.1\t0.2\t3e+30\n";
  EXPECT_EQ(written_again(text).value(), text);
  EXPECT_EQ(written_again("7 .5\t1   -2.5 0\r\n\n8 1e-05 \n9\t0 0.1 .2\t3e30").value(), text);
}

TEST(ModelText, EmbeddingsAreOfOneLengthAndOfNumbers) {
  for (const std::string line : {"1\t2\t3", "1\t2\t3\t4\t5", "1\t2\t3\tx", "1\t2\t3\tnan", "1\t2\t3\t4x"}) {
    const auto again = written_again("5\t1\t0.5\t0.25\n" + line + "\n6\t1\n");
    ASSERT_FALSE(again) << line;
    EXPECT_EQ(again.error().code, Code::kCorrupt);
    EXPECT_EQ(again.error().message,
              "in:2: is no line of a model, which has a key, a tab and a weight, and may have the 2 numbers of an "
              "embedding")
        << line;
  }
}

}  // namespace
}  // namespace pscloud

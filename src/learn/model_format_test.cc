#include "learn/model_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "engine/testing_cluster.h"
#include "io/config_file.h"
#include "io/memory_store.h"
#include "learn/config.pb.h"
#include "learn/model_files.h"
#include "learn/row_file.h"

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

PS::LM::DataConfig model_config(const std::string& text) {
  PS::LM::DataConfig config;
  EXPECT_TRUE(parse_config(text, "model", config));
  return config;
}

TEST(ModelFormat, IsWhatTheConfigSays) {
  const auto binary = model_output(model_config("format: BIN file: 'm/a'")).value();
  EXPECT_EQ(binary.format, ModelFormat::kBinary);
  EXPECT_EQ(binary.prefix, "m/a");
  EXPECT_EQ(model_output(model_config("format: TEXT file: 'a'")).value().format, ModelFormat::kText);
  EXPECT_FALSE(model_output(model_config("format: PROTO file: 'a'")));
  EXPECT_FALSE(model_output(model_config("format: TEXT file: 'a' file: 'b'")));
  EXPECT_THAT(model_input(model_config("format: BIN file: 'a' file: 'b'")).value(), ElementsAre("a", "b"));
  EXPECT_FALSE(model_input(model_config("format: TEXT")));
}

// Keys in the order of the table's rows.
Result<std::vector<std::pair<Key, float>>> weights_of(MemoryStore& store, const std::string& uri) {
  std::vector<std::pair<Key, float>> weights;
  TRY(read_model(store, uri, [&](auto keys, auto values, const Embeddings&) -> Result<> {
    for (size_t i = 0; i < keys.size(); ++i) weights.emplace_back(keys[i], values[i]);
    return {};
  }));
  return weights;
}

TEST(ModelFormat, BothFormsHoldTheSameAndAreToldApart) {
  const TestingCluster cluster({.servers = 2});
  const auto worker = cluster.worker();
  const Table table = worker->create_table({.name = "w", .updater = {"ftrl", {}}}).value();
  const std::vector<Key> keys{1, 5, 6, 7, 9, UINT64_MAX};
  ASSERT_TRUE(worker->push(table, keys, std::vector<float>{1, -2, 0, 1e-4f, 5, 7}).wait());
  MemoryStore store;
  EXPECT_EQ(save_model(*worker, {.weights = table}, store, {ModelFormat::kText, "text"}).value(), 5u);
  EXPECT_TRUE(worker->leave());
  // Another job: a pool of work is done once.
  const TestingCluster other({.servers = 2});
  const auto second = other.worker();
  const Table copy = second->create_table({.name = "w", .updater = {"ftrl", {}}}).value();
  const std::vector<FileInfo> files{store.stat("text_S0").value(), store.stat("text_S1").value()};
  ASSERT_TRUE(load_model_into(*second, {.weights = copy}, store, files));
  EXPECT_EQ(save_model(*second, {.weights = copy}, store, {ModelFormat::kBinary, "binary"}).value(), 5u);
  for (const std::string part : {"_S0", "_S1"}) {
    EXPECT_TRUE(is_row_file(store, "binary" + part).value());
    EXPECT_EQ(weights_of(store, "binary" + part).value(), weights_of(store, "text" + part).value());
  }
  EXPECT_TRUE(second->leave());
}

TEST(ModelFormat, APartOfACheckpointIsAModelToo) {
  MemoryStore store;
  RowFileWriter writer(store.create("f").value(), 1);
  ASSERT_TRUE(writer.write(std::vector<Key>{3, 4, 5}, std::vector<float>{1, 8, 8, 0, 7, 7, 2, 9, 9}));
  ASSERT_TRUE(writer.commit());
  EXPECT_THAT(weights_of(store, "f").value(), ElementsAre(std::pair<Key, float>(3, 1), std::pair<Key, float>(5, 2)));
}

// Written in either form, keys 5 and 7 have an embedding, and key 7 no weight.
TEST(ModelFormat, EmbeddingsAreInBothForms) {
  MemoryStore store;
  const std::vector<uint32_t> places{Embeddings::kNone, 0, 1};
  const std::vector<float> values{0.5f, -1, 2, 3};
  for (const ModelFormat format : {ModelFormat::kText, ModelFormat::kBinary}) {
    const auto writer = make_model_writer(format, store.create("f").value(), 2);
    ASSERT_TRUE(writer->write(std::vector<Key>{3, 5, 7}, std::vector<float>{1, 2, 0}, {2, places, values}));
    ASSERT_TRUE(writer->commit());
    EXPECT_EQ(writer->weights(), 2u);
    std::map<Key, std::vector<float>> found;
    ASSERT_TRUE(read_model(store, "f", [&](auto keys, auto weights, const Embeddings& embeddings) -> Result<> {
      for (size_t i = 0; i < keys.size(); ++i) {
        found[keys[i]] = {weights[i]};
        found[keys[i]].insert(found[keys[i]].end(), embeddings.of(i).begin(), embeddings.of(i).end());
      }
      return {};
    }));
    const std::map<Key, std::vector<float>> expected = {{3, {1}}, {5, {2, 0.5f, -1}}, {7, {0, 2, 3}}};
    EXPECT_EQ(found, expected);
  }
}

TEST(ModelFormat, RowsThatAreNoModelAreRefused) {
  MemoryStore store;
  RowFileWriter writer(store.create("f").value(), 2);
  ASSERT_TRUE(writer.write(std::vector<Key>{3}, std::vector<float>{1, 8, 9}));  // a checkpoint's, with state
  ASSERT_TRUE(writer.commit());
  EXPECT_THAT(weights_of(store, "f").error().message, HasSubstr("f: these rows are not those of a model"));
  store.put("f", store.get("f").substr(0, 40));
  EXPECT_THAT(weights_of(store, "f").error().message, HasSubstr("f: ends in the middle"));
}

}  // namespace
}  // namespace pscloud

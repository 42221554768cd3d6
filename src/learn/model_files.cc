#include "learn/model_files.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/log.h"
#include "learn/local_embeddings.h"
#include "learn/model_text.h"
#include "learn/shared_work.h"
#include "learn/table_scan.h"

namespace pscloud {
namespace {

constexpr const char* kLoadPool = "load the model";
enum ModelPlace : uint32_t { kModelWeights, kModelEmbeddings, kModelPlaces };
constexpr const char* kEmbeddingsLoaded = "model embeddings";

// Keys of a file, and of a scan, may stand in any order. Requests want them to increase.
std::vector<size_t> order_of(std::span<const Key> keys) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](size_t i) { return keys[i]; });
  return order;
}

// The weights, and the embeddings of those keys that have one.
Result<> write_embedded(LocalEmbeddings& embedded, const ScannedRows& rows, ModelTextWriter& writer) {
  std::vector<Key> keys;
  std::vector<float> weights;
  for (const size_t i : order_of(rows.keys)) {
    keys.push_back(rows.keys[i]);
    weights.push_back(rows.floats[i]);
  }
  embedded.ask_counts(keys);
  TRY(embedded.ask(keys, weights));
  TRY(embedded.wait());
  return writer.write(keys, weights, embedded.embeddings());
}

Result<uint64_t> save_part(Worker& worker, const ModelTables& model, FileStore& store, const std::string& uri,
                           int part) {
  ModelTextWriter writer(TRY(store.create(uri)));
  std::optional<LocalEmbeddings> embedded;
  if (model.embedded) embedded.emplace(worker, *model.embedded);
  const bool also_zeros = model.embedded && !model.embedded->l1_shrink;  // they may have an embedding
  TRY(scan_part(worker, model.weights, part, also_zeros ? ScanKind::kAll : ScanKind::kNonzero,
                [&](const ScannedRows& rows) {
                  return embedded ? write_embedded(*embedded, rows, writer) : writer.write(rows.keys, rows.floats);
                }));
  TRY(writer.commit());
  return writer.weights();
}

Result<> push_weights(Worker& worker, const Table& table, std::span<const Key> keys, std::span<const float> weights,
                      std::span<const size_t> order) {
  std::vector<Key> sorted_keys;
  std::vector<float> sorted_weights;
  for (const size_t i : order) {
    if (!sorted_keys.empty() && sorted_keys.back() == keys[i]) return corrupt("the key {} stands there twice", keys[i]);
    sorted_keys.push_back(keys[i]);
    sorted_weights.push_back(weights[i]);
  }
  return worker.push(table, sorted_keys, sorted_weights).wait();
}

// Makes the table, of as many columns as the embeddings have numbers, for whoever is the first to find one.
Result<> push_embeddings(Worker& worker, std::span<const Key> keys, const Embeddings& embeddings,
                         std::span<const size_t> order) {
  const TableSpec spec{
      .name = kEmbeddingsLoaded, .width = static_cast<uint32_t>(embeddings.dim), .updater = {"assign"}};
  TRY(validate(spec));
  const auto table = worker.create_table(spec);
  if (!table && table.error().code == Code::kInvalid) {
    return corrupt("embeddings of {} numbers: those of another file have more or less", embeddings.dim);
  }
  TRY(table);
  std::vector<Key> sorted_keys;
  std::vector<float> sorted_values;
  for (const size_t i : order) {
    const std::span<const float> embedding = embeddings.of(i);
    if (embedding.empty()) continue;
    sorted_keys.push_back(keys[i]);
    sorted_values.insert(sorted_values.end(), embedding.begin(), embedding.end());
  }
  return worker.push(*table, sorted_keys, sorted_values).wait();
}

// A run with more servers has left files that patterns would take for this model's.
void warn_of_others(FileStore& store, const std::string& prefix, int parts) {
  const std::string next = fmt::format("{}_S{}", prefix, parts);
  if (store.stat(next)) log_warning("{} is there, but no part of this model: an earlier one has left it", next);
}

}  // namespace

Result<uint64_t> save_model(Worker& worker, const ModelTables& model, FileStore& store, const std::string& prefix) {
  const std::string pool = fmt::format("save {:016x}", hash64(bytes_of(prefix)));  // a job may save several
  std::vector<std::string> items;
  for (int part = 0; part < worker.parts(); ++part) items.push_back(fmt::format("{}_S{}", prefix, part));
  TRY(share_work(worker, pool, items, [&](const WorkItem& item) -> Result<std::vector<Addend>> {
    const uint64_t weights = TRY(save_part(worker, model, store, item.text, static_cast<int>(item.number)));
    if (item.number == 0) warn_of_others(store, prefix, worker.parts());
    return std::vector<Addend>{{0, static_cast<double>(weights)}};
  }));
  return static_cast<uint64_t>(TRY(worker.tally(pool, {}, 0, 1)).front());
}

Result<LoadedModel> load_model(Worker& worker, FileStore& store, std::span<const FileInfo> files) {
  LoadedModel model;
  const Table weights = TRY(worker.create_table({.name = "model", .updater = {"assign"}}));
  model.tables.weights = weights;
  std::vector<std::string> items;
  for (const FileInfo& file : files) items.push_back(file.uri);
  TRY(share_work(worker, kLoadPool, items, [&](const WorkItem& item) -> Result<std::vector<Addend>> {
    uint64_t lines = 0;
    uint64_t embedded = 0;
    TRY(read_model_text(store, item.text, [&](auto keys, auto values, const Embeddings& embeddings) -> Result<> {
      lines += keys.size();
      embedded += embeddings.count();
      const std::vector<size_t> order = order_of(keys);
      TRY(push_weights(worker, weights, keys, values, order).at(item.text));
      if (embeddings.count() == 0) return {};
      return push_embeddings(worker, keys, embeddings, order).at(item.text);
    }));
    return std::vector<Addend>{{kModelWeights, static_cast<double>(lines)},
                               {kModelEmbeddings, static_cast<double>(embedded)}};
  }));
  const std::vector<double> sums = TRY(worker.tally(kLoadPool, {}, 0, kModelPlaces));
  model.weights = static_cast<uint64_t>(sums[kModelWeights]);
  model.embeddings = static_cast<uint64_t>(sums[kModelEmbeddings]);
  const uint64_t keys = TRY(count_rows(worker, weights)).rows;
  if (keys != model.weights) {
    return invalid("{} model files have {} weights of {} different keys: they are not all of one model", files.size(),
                   model.weights, keys);
  }
  // Keys without one find zeros in the table, which add nothing to a score.
  if (model.embeddings > 0) model.tables.embedded = {.embeddings = TRY(worker.open_table(kEmbeddingsLoaded))};
  return model;
}

}  // namespace pscloud

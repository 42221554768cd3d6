#include "learn/model_files.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/log.h"
#include "learn/local_embeddings.h"
#include "learn/shared_work.h"
#include "learn/table_scan.h"

namespace pscloud {
namespace {

constexpr const char* kLoadPool = "load the model";
constexpr const char* kCheckPool = "check the model";
enum ModelPlace : uint32_t { kModelRows, kModelEmbeddings, kModelPlaces };

// The weights of some rows, and the embeddings of those keys that have one.
Result<> write_embedded(LocalEmbeddings& embedded, const ScannedRows& rows, ModelWriter& writer) {
  std::vector<size_t> order(rows.keys.size());  // requests want keys to increase
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](size_t i) { return rows.keys[i]; });
  std::vector<Key> keys;
  std::vector<float> weights;
  for (const size_t i : order) {
    keys.push_back(rows.keys[i]);
    weights.push_back(rows.floats[i]);
  }
  embedded.ask_counts(keys);
  TRY(embedded.ask(keys, weights));
  TRY(embedded.wait());
  return writer.write(keys, weights, embedded.embeddings());
}

Result<uint64_t> save_part(Worker& worker, const ModelTables& model, FileStore& store, const std::string& uri, int part,
                           ModelFormat format, ModelOrder order) {
  const uint32_t dim = model.embedded ? model.embedded->embeddings.spec.width : 0;
  const auto writer = make_model_writer(format, TRY(store.create(uri)), dim);
  std::optional<LocalEmbeddings> embedded;
  if (model.embedded) embedded.emplace(worker, *model.embedded);
  const bool also_zeros = model.embedded && !model.embedded->l1_shrink;  // they may have an embedding
  const auto scan = order == ModelOrder::kByKey ? scan_part_by_key : scan_part;
  TRY(scan(worker, model.weights, part, also_zeros ? ScanKind::kAll : ScanKind::kNonzero, [&](const ScannedRows& rows) {
    return embedded ? write_embedded(*embedded, rows, *writer) : writer->write(rows.keys, rows.floats, {});
  }));
  TRY(writer->commit());
  return writer->weights();
}

// A run with more servers has left files that patterns would take for this model's.
void warn_of_others(FileStore& store, const std::string& prefix, int parts) {
  const std::string next = fmt::format("{}_S{}", prefix, parts);
  if (store.stat(next)) log_warning("{} is there, but no part of this model: an earlier one has left it", next);
}

// Where embeddings go. A key that has one has been seen often enough.
Result<> set_embeddings(Worker& worker, const EmbeddingTables& to, std::span<const Key> keys,
                        const Embeddings& embeddings) {
  std::vector<Key> with;
  std::vector<float> values;
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::span<const float> embedding = embeddings.of(i);
    if (embedding.empty()) continue;
    with.push_back(keys[i]);
    values.insert(values.end(), embedding.begin(), embedding.end());
  }
  TRY(worker.set_rows(to.embeddings, with, values, ScanKind::kAll).wait());
  if (!to.counts) return {};
  return worker.set_rows(*to.counts, with, std::vector<float>(with.size(), to.threshold + 1), ScanKind::kAll).wait();
}

// Gives the tables for embeddings of so many numbers.
using FindEmbedded = std::function<Result<EmbeddingTables>(uint32_t dim)>;

Result<LoadedModel> load(Worker& worker, const Table& weights, const FindEmbedded& find, FileStore& store,
                         std::span<const FileInfo> files) {
  std::vector<std::string> items;
  for (const FileInfo& file : files) items.push_back(file.uri);
  const auto load_one = [&](const WorkItem& item) -> Result<std::vector<Addend>> {
    uint64_t rows = 0;
    uint64_t embedded = 0;
    const auto take = [&](std::span<const Key> keys, std::span<const float> values,
                          const Embeddings& embeddings) -> Result<> {
      rows += keys.size();
      embedded += embeddings.count();
      if (keys.empty()) return {};
      TRY(worker.set_rows(weights, keys, values, ScanKind::kAll).wait());
      if (embeddings.count() == 0) return {};
      return set_embeddings(worker, TRY(find(static_cast<uint32_t>(embeddings.dim))), keys, embeddings);
    };
    TRY(read_model(store, item.text, [&](auto keys, auto values, const Embeddings& embeddings) {
      return take(keys, values, embeddings).at(item.text);
    }));
    return std::vector<Addend>{{kModelRows, static_cast<double>(rows)},
                               {kModelEmbeddings, static_cast<double>(embedded)}};
  };
  // A row that is set late would undo what has been learned since.
  TRY(share_work(worker, kLoadPool, items, load_one, {.slow = SlowWork::kAwait, .on_pause = {}}));
  const std::vector<double> sums = TRY(worker.tally(kLoadPool, {}, 0, kModelPlaces));
  // Once: a worker that comes late finds rows that have been made since.
  const std::vector<std::string> once{"all"};
  const auto count = [&](const WorkItem&) -> Result<std::vector<Addend>> {
    return std::vector<Addend>{{0, static_cast<double>(TRY(count_rows(worker, weights)).rows)}};
  };
  TRY(share_work(worker, kCheckPool, once, count, {.slow = SlowWork::kAwait, .on_pause = {}}));
  const double keys = TRY(worker.tally(kCheckPool, {}, 0, 1)).front();
  if (keys != sums[kModelRows]) {
    return invalid("{} model files have {} weights of {} different keys: they are not all of one model", files.size(),
                   sums[kModelRows], keys);
  }
  return LoadedModel{.tables = {.weights = weights, .embedded = {}},
                     .weights = static_cast<uint64_t>(sums[kModelRows]),
                     .embeddings = static_cast<uint64_t>(sums[kModelEmbeddings])};
}

}  // namespace

Result<uint64_t> save_model(Worker& worker, const ModelTables& model, FileStore& store, const ModelOutput& output,
                            ModelOrder order) {
  const std::string pool = fmt::format("save {:016x}", hash64(bytes_of(output.prefix)));  // a job may save several
  std::vector<std::string> items;
  for (int part = 0; part < worker.parts(); ++part) items.push_back(fmt::format("{}_S{}", output.prefix, part));
  TRY(share_work(worker, pool, items, [&](const WorkItem& item) -> Result<std::vector<Addend>> {
    const uint64_t weights =
        TRY(save_part(worker, model, store, item.text, static_cast<int>(item.number), output.format, order));
    if (item.number == 0) warn_of_others(store, output.prefix, worker.parts());
    return std::vector<Addend>{{0, static_cast<double>(weights)}};
  }));
  return static_cast<uint64_t>(TRY(worker.tally(pool, {}, 0, 1)).front());
}

Result<LoadedModel> load_model(Worker& worker, FileStore& store, std::span<const FileInfo> files) {
  constexpr const char* kEmbeddingsLoaded = "model embeddings";
  const Table weights = TRY(worker.create_table({.name = "model", .updater = {"assign"}}));
  // Whoever is the first to find an embedding makes the table.
  const auto find = [&](uint32_t dim) -> Result<EmbeddingTables> {
    const auto table = worker.create_table({.name = kEmbeddingsLoaded, .width = dim, .updater = {"assign"}});
    if (!table && table.error().code == Code::kInvalid) {
      return corrupt("embeddings of {} numbers: those of another file have more or less", dim);
    }
    return EmbeddingTables{.embeddings = TRY(table)};
  };
  LoadedModel model = TRY(load(worker, weights, find, store, files));
  // Keys without one find zeros in the table, which add nothing to a score.
  if (model.embeddings > 0) model.tables.embedded = {.embeddings = TRY(worker.open_table(kEmbeddingsLoaded))};
  return model;
}

Result<> load_model_into(Worker& worker, const ModelTables& model, FileStore& store, std::span<const FileInfo> files) {
  const auto find = [&](uint32_t dim) -> Result<EmbeddingTables> {
    if (!model.embedded) return invalid("this model has embeddings: it wants a config with factorization_machine");
    if (model.embedded->embeddings.spec.width == dim) return *model.embedded;
    return invalid("embeddings of {} numbers, but factorization_machine.dim is {}", dim,
                   model.embedded->embeddings.spec.width);
  };
  TRY(load(worker, model.weights, find, store, files));
  return {};
}

}  // namespace pscloud

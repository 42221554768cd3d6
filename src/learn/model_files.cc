#include "learn/model_files.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/log.h"
#include "learn/model_text.h"
#include "learn/shared_work.h"
#include "learn/table_scan.h"

namespace pscloud {
namespace {

constexpr const char* kLoadPool = "load the model";

Result<uint64_t> save_part(Worker& worker, const Table& table, FileStore& store, const std::string& uri, int part) {
  ModelTextWriter writer(TRY(store.create(uri)));
  TRY(scan_part(worker, table, part, ScanKind::kNonzero,
                [&](const ScannedRows& rows) { return writer.write(rows.keys, rows.floats); }));
  TRY(writer.commit());
  return writer.weights();
}

// Keys of a file may stand in any order.
Result<> push_sorted(Worker& worker, const Table& table, std::span<const Key> keys, std::span<const float> weights) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](size_t i) { return keys[i]; });
  std::vector<Key> sorted_keys;
  std::vector<float> sorted_weights;
  for (const size_t i : order) {
    if (!sorted_keys.empty() && sorted_keys.back() == keys[i]) return corrupt("the key {} stands there twice", keys[i]);
    sorted_keys.push_back(keys[i]);
    sorted_weights.push_back(weights[i]);
  }
  return worker.push(table, sorted_keys, sorted_weights).wait();
}

// A run with more servers has left files that patterns would take for this model's.
void warn_of_others(FileStore& store, const std::string& prefix, int parts) {
  const std::string next = fmt::format("{}_S{}", prefix, parts);
  if (store.stat(next)) log_warning("{} is there, but no part of this model: an earlier one has left it", next);
}

// What all workers have added up.
Result<uint64_t> total(Worker& worker, const std::string& pool) {
  return static_cast<uint64_t>(TRY(worker.tally(pool, {}, 0, 1)).front());
}

}  // namespace

Result<uint64_t> save_model(Worker& worker, const Table& table, FileStore& store, const std::string& prefix) {
  const std::string pool = fmt::format("save {:016x}", hash64(bytes_of(prefix)));  // a job may save several
  std::vector<std::string> items;
  for (int part = 0; part < worker.parts(); ++part) items.push_back(fmt::format("{}_S{}", prefix, part));
  TRY(share_work(worker, pool, items, [&](const WorkItem& item) -> Result<std::vector<Addend>> {
    const uint64_t weights = TRY(save_part(worker, table, store, item.text, static_cast<int>(item.number)));
    if (item.number == 0) warn_of_others(store, prefix, worker.parts());
    return std::vector<Addend>{{0, static_cast<double>(weights)}};
  }));
  return total(worker, pool);
}

Result<uint64_t> load_model(Worker& worker, const Table& table, FileStore& store, std::span<const FileInfo> files) {
  std::vector<std::string> items;
  for (const FileInfo& file : files) items.push_back(file.uri);
  TRY(share_work(worker, kLoadPool, items, [&](const WorkItem& item) -> Result<std::vector<Addend>> {
    uint64_t weights = 0;
    TRY(read_model_text(store, item.text, [&](std::span<const Key> keys, std::span<const float> values) {
      weights += keys.size();
      return push_sorted(worker, table, keys, values).at(item.text);
    }));
    return std::vector<Addend>{{0, static_cast<double>(weights)}};
  }));
  const uint64_t weights = TRY(total(worker, kLoadPool));
  const uint64_t keys = TRY(count_rows(worker, table)).rows;
  if (keys == weights) return weights;
  return invalid("{} model files have {} weights of {} different keys: they are not all of one model", files.size(),
                 weights, keys);
}

}  // namespace pscloud

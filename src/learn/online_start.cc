#include "learn/online_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "base/hash.h"
#include "io/file_pattern.h"
#include "learn/checkpoint.h"
#include "learn/checkpoint_files.h"
#include "learn/model_files.h"
#include "learn/shared_work.h"

namespace pscloud {
namespace {

constexpr const char* kStartPool = "start";

// One worker looks for a checkpoint; these places of the pool's tally tell the others what they need of it.
enum StartPlace : uint32_t {
  kStartNumber,
  kStartPass,
  kStartTableParts,
  kStartDifferent,
  kStartRepeatedParts,
  kStartBest,
  kStartWorse,
  kStartSums,
  kStartDone = kStartSums + kProgressPlaces,  // one for each part of the data
};

// `server_threads`: that there are now.
Result<std::vector<Addend>> find_start(FileStore& store, const CheckpointSettings& settings,
                                       std::span<const Table> tables, int server_threads, const OnlineData& data) {
  TRY(check_checkpoints_before_start(store, settings));
  if (!settings.resume) return std::vector<Addend>();
  const PS::LM::Checkpoint found = TRY(newest_checkpoint(store, settings));
  const std::string name = checkpoint_file(settings.folder, found.number());
  bool same = found.has_online() && static_cast<size_t>(found.table_size()) == tables.size();
  for (size_t i = 0; same && i < tables.size(); ++i) {
    const auto& table = found.table(static_cast<int>(i));
    same = table.name() == tables[i].spec.name && table.part_size() == found.table(0).part_size();
  }
  if (!same) return invalid("{}: is not of a training like this one", name);
  const bool has_counts =
      std::ranges::any_of(tables, [](const Table& table) { return table.spec.kind == TableKind::kSketch; });
  if (has_counts && found.table(0).part_size() != server_threads) {
    return invalid("{}: the counts of tail_feature_freq go with the number of server threads: resume with {}, not {}",
                   name, found.table(0).part_size(), server_threads);
  }
  const OnlinePosition position = TRY(get_position(found.online(), data).at(name));
  std::vector<Addend> addends{{kStartNumber, static_cast<double>(found.number())},
                              {kStartPass, static_cast<double>(position.pass)},
                              {kStartTableParts, static_cast<double>(found.table(0).part_size())},
                              {kStartDifferent, static_cast<double>(position.different)},
                              {kStartRepeatedParts, static_cast<double>(position.repeated_parts)}};
  if (std::isfinite(position.early.best)) {
    addends.push_back({kStartBest, position.early.best});
    addends.push_back({kStartWorse, static_cast<double>(position.early.worse)});
  }
  for (uint32_t i = 0; i < kProgressPlaces; ++i) addends.push_back({kStartSums + i, position.sums[i]});
  for (uint32_t i = 0; i < data.parts.size(); ++i) {
    if (position.done[i]) addends.push_back({kStartDone + i, 1});
  }
  return addends;
}

}  // namespace

Result<OnlineData> online_data(Worker& worker, FileStore& store, std::span<const SelectedFile> files,
                               const OnlineSettings& settings) {
  OnlineData data;
  const std::vector<std::string> items = TRY(cut_into_items(worker, store, files, kTrainingData, settings.checkpoint));
  data.parts = items_of_pass(items, {.replica = settings.selection.replica}, 1);
  ByteWriter all;
  for (const SelectedFile& file : files) {
    all.put_text(file.info.uri);
    all.put(file.info.size);
  }
  for (const std::string& part : data.parts) all.put_text(part);
  const Hash128 hash = hash128(all.bytes());
  data.hash = fmt::format("{:016x}{:016x}", hash.high, hash.low);
  return data;
}

void put_position(const OnlinePosition& position, const OnlineData& data, PS::LM::OnlinePosition& out) {
  out.set_pass(position.pass);
  out.set_parts(data.parts.size());
  out.set_data(data.hash);
  for (size_t begin = 0; begin < position.done.size();) {
    size_t end = begin;
    while (end < position.done.size() && position.done[end]) ++end;
    if (end > begin) {
      out.add_done_begin(begin);
      out.add_done_end(end);
    }
    begin = std::max(end, begin + 1);
  }
  for (const double sum : position.sums) out.add_sum(sum);
  out.set_different(position.different);
  if (position.repeated_parts > 0) out.set_repeated_parts(position.repeated_parts);
  if (!std::isfinite(position.early.best)) return;
  out.set_best_logloss(position.early.best);
  out.set_worse_passes(position.early.worse);
}

Result<OnlinePosition> get_position(const PS::LM::OnlinePosition& position, const OnlineData& data) {
  const size_t parts = data.parts.size();
  if (position.parts() != parts || position.data() != data.hash) {
    return invalid("the training data are not what they were: {} parts then, {} now; files have come, gone or changed",
                   position.parts(), parts);
  }
  OnlinePosition found;
  found.pass = position.pass();
  found.done.resize(parts);
  found.sums.assign(position.sum().begin(), position.sum().end());
  found.different = position.different();
  found.repeated_parts = position.repeated_parts();
  if (position.has_best_logloss()) found.early = {position.best_logloss(), position.worse_passes()};
  bool sound =
      found.pass > 0 && found.sums.size() == kProgressPlaces && position.done_begin_size() == position.done_end_size();
  for (int i = 0; sound && i < position.done_begin_size(); ++i) {
    const uint64_t begin = position.done_begin(i);
    const uint64_t end = position.done_end(i);
    sound = begin < end && end <= parts;
    for (uint64_t at = begin; sound && at < end; ++at) found.done[at] = true;
  }
  if (!sound) return corrupt("its place in the data makes no sense");
  return found;
}

Result<OnlinePosition> start_online(Worker& worker, FileStore& store, const OnlineSettings& settings,
                                    const ModelTables& model, std::span<const Table> tables, const OnlineData& data) {
  OnlinePosition start;
  if (!settings.checkpoint.enabled()) TRY(check_checkpoints_before_start(store, settings.checkpoint));
  if (settings.checkpoint.enabled()) {
    const std::vector<std::string> one{settings.checkpoint.folder};
    TRY(share_work(
        worker, kStartPool, one,
        [&](const WorkItem&) { return find_start(store, settings.checkpoint, tables, worker.parts(), data); },
        {.slow = SlowWork::kAwait, .on_pause = {}}));
    const auto count = kStartDone + static_cast<uint32_t>(data.parts.size());
    const std::vector<double> told = TRY(worker.tally(kStartPool, {}, 0, count));
    start.checkpoint = static_cast<uint64_t>(told[kStartNumber]);
    if (start.checkpoint > 0) {
      start.pass = static_cast<uint32_t>(told[kStartPass]);
      start.different = static_cast<uint64_t>(told[kStartDifferent]);
      start.repeated_parts = static_cast<uint64_t>(told[kStartRepeatedParts]);
      if (told[kStartBest] > 0) start.early = {told[kStartBest], static_cast<uint32_t>(told[kStartWorse])};
      start.sums.assign(told.begin() + kStartSums, told.begin() + kStartDone);
      for (size_t i = 0; i < data.parts.size(); ++i) start.done.push_back(told[kStartDone + i] > 0);
      const auto table_parts = static_cast<uint32_t>(told[kStartTableParts]);
      TRY(restore_tables(worker, store, settings.checkpoint, start.checkpoint, tables, table_parts));
      return start;
    }
  }
  if (!settings.initial_model.empty()) {
    TRY(load_model_into(worker, model, store, TRY(find_files(store, settings.initial_model))));
  }
  return start;
}

}  // namespace pscloud

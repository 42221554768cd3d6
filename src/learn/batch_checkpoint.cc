#include "learn/batch_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/log.h"
#include "learn/checkpoint.h"
#include "learn/checkpoint_files.h"
#include "learn/shared_work.h"

namespace pscloud {

using PS::LM::Checkpoint;

namespace {

constexpr const char* kBatchStartPool = "start";
constexpr uint32_t kBatchWorkersMax = 1024;

// Places in the tally of a checkpoint, of each worker: examples, and the checksum of its file in two halves.
enum StatePlace : uint32_t { kStateExamples, kStateCheckLow, kStateCheckHigh, kStatePlaces };

}  // namespace

Result<std::optional<Checkpoint>> find_batch_checkpoint(Worker& worker, FileStore& store,
                                                        const CheckpointSettings& settings) {
  if (!settings.enabled()) {
    TRY(check_checkpoints_before_start(store, settings));
    return std::nullopt;
  }
  const std::vector<std::string> one{settings.folder};
  const auto find = [&](const WorkItem&) -> Result<std::vector<Addend>> {
    TRY(check_checkpoints_before_start(store, settings));
    if (!settings.resume) return std::vector<Addend>();
    const Checkpoint found = TRY(newest_checkpoint(store, settings));
    if (!found.has_batch() || found.table_size() != 1) {
      return invalid("{}: is not of a training like this one", checkpoint_file(settings.folder, found.number()));
    }
    return std::vector<Addend>{{0, static_cast<double>(found.number())}};
  };
  TRY(share_work(worker, kBatchStartPool, one, find, {.slow = SlowWork::kAwait, .on_pause = {}}));
  const auto number = static_cast<uint64_t>(TRY(worker.tally(kBatchStartPool, {}, 0, 1)).front());
  if (number == 0) return std::nullopt;
  return TRY(read_manifest(store, settings.folder, number));
}

Result<> write_batch_checkpoint(Worker& worker, FileStore& store, const CheckpointSettings& settings, uint64_t number,
                                const Table& weights, const BatchState& state, const BatchPosition& position,
                                uint64_t examples) {
  const std::string tally = fmt::format("state of checkpoint {}", number);
  const auto rank = static_cast<uint32_t>(worker.rank());
  const auto written = write_batch_state(store, checkpoint_worker_file(settings.folder, number, rank), state.descent,
                                         state.columns, state.parts);
  if (written) {
    const std::vector<Addend> addends = {
        {rank * kStatePlaces + kStateExamples, static_cast<double>(state.descent.examples())},
        {rank * kStatePlaces + kStateCheckLow, static_cast<double>(*written & UINT32_MAX)},
        {rank * kStatePlaces + kStateCheckHigh, static_cast<double>(*written >> 32)}};
    TRY(worker.tally(tally, addends, 0, 0));
  } else {
    log_warning("checkpoint {} is not written: {}", number, written.error().message);
  }
  TRY(worker.barrier());
  const auto describe = [&](Checkpoint& checkpoint) -> Result<> {
    const std::vector<double> sums = TRY(worker.tally(tally, {}, 0, kBatchWorkersMax * kStatePlaces));
    uint64_t there = 0;
    put_position(position, *checkpoint.mutable_batch());
    for (uint32_t i = 0; i < kBatchWorkersMax; ++i) {
      const double* const of_worker = &sums[size_t{i} * kStatePlaces];
      if (of_worker[kStateCheckLow] + of_worker[kStateCheckHigh] == 0) continue;
      auto& file = *checkpoint.mutable_batch()->add_state();
      file.set_worker(i);
      file.set_examples(static_cast<uint64_t>(of_worker[kStateExamples]));
      file.set_check(static_cast<uint64_t>(of_worker[kStateCheckHigh]) << 32 |
                     static_cast<uint64_t>(of_worker[kStateCheckLow]));
      there += file.examples();
    }
    if (there != examples) return unavailable("{} of {} examples are missing", examples - there, examples);
    return {};
  };
  return write_checkpoint(worker, store, settings, number, {&weights, 1}, describe);
}

Result<> restore_batch(Worker& worker, FileStore& store, const CheckpointSettings& settings,
                       const Checkpoint& checkpoint, const Table& weights, const BatchState& state, uint64_t examples) {
  const auto parts = static_cast<uint32_t>(checkpoint.table(0).part_size());
  TRY(restore_tables(worker, store, settings, checkpoint.number(), {&weights, 1}, parts));
  std::vector<uint8_t> found(state.parts.size());
  uint64_t examples_then = 0;
  for (const auto& one : checkpoint.batch().state()) {
    const std::string uri = checkpoint_worker_file(settings.folder, checkpoint.number(), one.worker());
    TRY(read_batch_state(store, uri, state.columns, state.parts, state.descent, found));
    examples_then += one.examples();
  }
  const bool all_found = std::ranges::find(found, 0) == found.end();
  if (all_found && examples_then == examples) return {};
  return invalid(
      "{}: the training data are not what they were: {} examples then, {} now; files have come, gone or changed",
      checkpoint_file(settings.folder, checkpoint.number()), examples_then, examples);
}

}  // namespace pscloud

#include "cli/train/train_dry_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "base/json.h"
#include "cli/exit_code.h"
#include "cli/local/child_process.h"
#include "data/text_reader.h"
#include "engine/table/table_sparse.h"
#include "learn/batch_examples.h"
#include "learn/data_estimate.h"
#include "learn/part_scorer.h"
#include "learn/score_summary.h"
#include "pscloud/updater.h"

namespace pscloud {
namespace {

// Stacks, buffers of connections, and what the allocator keeps: measured, for all jobs about the same.
constexpr double kHereSlackBytes = 2 << 20;
constexpr double kServerSlackBytes = 4 << 20;  // with the memory that it shares with workers
constexpr double kWorkerSlackBytes = 2 << 20;

// Processes of one kind.
struct PlannedProcesses {
  std::string what;
  int count = 1;
  double bytes = 0;  // of each
};

struct DryRun {
  // Of this process before it has read anything: all of them are the same program.
  double process_bytes = ChildProcess::resident_bytes_of(0);
  DataEstimate data;
  double table_bytes = 0;  // on all servers together
  double row_bytes = 0;
  std::vector<PlannedProcesses> processes;
};

double table_bytes(uint64_t rows, size_t floats) {
  const uint64_t index = SparseIndex().bytes_with(rows);
  // The last huge page of an index is for what crowds at its end: hardly anybody touches it.
  const uint64_t untouched = index < 2 * HugeMemory::kHugePage ? 0 : HugeMemory::kHugePage;
  return static_cast<double>(SparseTable::bytes_for(rows, floats) - untouched);
}

// Examples that are worked on together.
struct Minibatch {
  double rows = 0;
  double features = 0;
  double keys = 0;
  bool has_values = false;

  double value_bytes() const { return has_values ? sizeof(float) : 0; }
  // As NumberedRows have them.
  double bytes() const {
    return features * (sizeof(uint32_t) + value_bytes()) + rows * (sizeof(size_t) + sizeof(float)) + keys * sizeof(Key);
  }
};

// What one that reads examples holds at a time, but for minibatches: text, and features on their way to these, as many
// as a minibatch has and the text; their keys are numbered.
double reader_bytes(const Minibatch& one) {
  constexpr double kSpare = 1.5;        // vectors grow by doubling
  constexpr double kFeatureInText = 8;  // bytes
  const auto slots = static_cast<double>(std::bit_ceil(static_cast<uint64_t>(2 * one.keys) + 1));
  const double localizer = slots * sizeof(uint32_t) + one.keys * (2 * 16 + 4);
  const double features = one.features + TextReader::kChunkBytes / kFeatureInText;
  return TextReader::kChunkBytes * 2 + features * (sizeof(Key) + one.value_bytes() + sizeof(uint32_t)) * kSpare +
         localizer;
}

// What goes to the servers and comes from there for a minibatch.
double request_bytes(const Minibatch& one) { return one.keys * 2 * (sizeof(Key) + sizeof(float)); }

// Of LocalEmbeddings, for a minibatch: the keys' counts and places; of those that have an embedding key, values and
// gradient, and both once more on their way; sums of the rows.
double embedding_bytes(const EmbeddingSettings& settings, const DataEstimate& data, const Minibatch& one) {
  const auto dim = static_cast<double>(settings.table.width);
  // Those that have none come once at least, and at most as often as the threshold says: about a third of that.
  const double seldom = (data.keys - data.embedded_keys) * std::max(1.0, settings.threshold / 3.0) / data.examples;
  const double embedded = std::clamp(one.keys - seldom * one.rows, 0.0, data.embedded_keys);
  return one.keys * (3 * sizeof(float) + 2 * sizeof(Key)) + embedded * (sizeof(Key) + dim * 4 * sizeof(float)) +
         one.rows * dim * sizeof(float);
}

double trainer_bytes(const OnlineSettings& settings, const DataEstimate& data, double busy) {
  const Minibatch one{.rows = data.minibatch,
                      .features = data.features * data.minibatch,
                      .keys = data.minibatch_keys,
                      .has_values = data.has_values};
  // Of OnlineWorker: those of a part that have begun, and what is left of those that are done until it is used again:
  // the memory of their examples is used at once.
  const double of_part = std::ceil(data.examples / data.parts / data.minibatch);
  const double begun = std::min(settings.max_delay + 1.0, of_part);
  const double minibatches = std::min(settings.max_delay + begun, of_part * std::ceil(data.parts / busy));
  const double weights = one.keys * sizeof(float);
  const double left = weights + (settings.embeddings ? embedding_bytes(*settings.embeddings, data, one) : 0);
  return reader_bytes(one) + begun * (one.bytes() + request_bytes(one)) + minibatches * left + 2 * weights;
}

// What it takes to write the model: rows come in messages, and become text.
double model_bytes(const OnlineSettings& settings, const DataEstimate& data) {
  const auto of_message = [](double floats) { return (1 << 20) / (sizeof(Key) + floats * sizeof(float)); };
  constexpr double kRowBytes = 72;    // measured,
  constexpr double kFloatBytes = 50;  // as this, of an embedding
  const double weights = std::min(data.common_keys, of_message(1)) * kRowBytes;
  if (!settings.embeddings) return weights;
  const auto dim = static_cast<double>(settings.embeddings->table.width);
  return weights + std::min(data.embedded_keys, of_message(dim)) * dim * kFloatBytes;
}

// What it takes to try the model while it is trained: at the first server, and of each that trains.
struct ValidationBytes {
  double at_server = 0;
  double of_trainer = 0;
};

Result<ValidationBytes> validation_bytes(FileStore& store, const ValidationSettings& settings, int trainers) {
  if (settings.files.empty()) return ValidationBytes();
  constexpr double kSummary = sizeof(double) * ScoreSummary::kPlaces;  // as a tally, or as counts
  constexpr double kMessages = 12 << 20;                               // in which the tally is told: measured
  const DataEstimate data = TRY(estimate_data(store, settings.files,
                                              {.format = settings.format,
                                               .ignore_groups = true,
                                               .selection = settings.selection,
                                               .workers = trainers,
                                               .minibatch = PartScorer::kRowsScored}));
  const double part = static_cast<double>(part_bytes(data.bytes, static_cast<uint64_t>(trainers))) /
                      static_cast<double>(std::max<uint64_t>(1, data.bytes));
  const double features = data.features * std::min<double>(PartScorer::kRowsScored, data.examples * part);
  const Minibatch one{.rows = features / data.features,
                      .features = features,
                      .keys = std::min(features, data.minibatch_keys),
                      .has_values = data.has_values};
  const double scoring = reader_bytes(one) + one.bytes() + request_bytes(one) + 3 * one.keys * sizeof(float);
  return ValidationBytes{.at_server = kSummary + kMessages, .of_trainer = kSummary + scoring};
}

// The servers' part of tables, and what is of no table: where all is in one process, both.
void plan_processes(const TrainJob& job, double bytes_on_server, double training, const ValidationBytes& validation,
                    DryRun& run) {
  const double trying = validation.of_trainer * job.counts.threads;
  if (job.counts.servers == 0) {
    run.processes.push_back(
        {"this process", 1,
         run.process_bytes + kHereSlackBytes + bytes_on_server + training + trying + validation.at_server});
  } else {
    run.processes.push_back(
        {"server", job.counts.servers, run.process_bytes + kServerSlackBytes + bytes_on_server + validation.at_server});
    run.processes.push_back({"worker", job.counts.workers, run.process_bytes + kWorkerSlackBytes + training + trying});
  }
  run.table_bytes = bytes_on_server * std::max(1, job.counts.servers);
  run.row_bytes = run.table_bytes / std::max(1.0, run.data.keys);
}

int trainers_of(const TrainJob& job) { return std::max(1, job.counts.workers) * job.counts.threads; }
// Of the threads of one process, those that get some of the data.
double busy_threads(const TrainJob& job, const DataEstimate& data) {
  return std::min<double>(job.counts.threads, std::ceil(data.parts / std::max(1, job.counts.workers)));
}

Result<DryRun> plan(const TrainJob& job, const OnlineSettings& settings) {
  DryRun run;
  const auto store = make_file_store();
  run.data = TRY(estimate_data(
      *store, settings.files,
      {.format = settings.format,
       .selection = settings.selection,
       .workers = trainers_of(job),
       .minibatch = settings.minibatch,
       .common_above = settings.tail.frequency,
       // What is left out is not counted.
       .embedded_above = settings.tail.frequency + (settings.embeddings ? settings.embeddings->threshold : 0)}));
  const auto updater = TRY(UpdaterCatalog().make(settings.table.updater));
  const size_t floats = settings.table.width + updater->state_width(settings.table.width);
  const int servers = std::max(1, job.counts.servers);
  const auto keys = static_cast<uint64_t>(run.data.common_keys / servers);
  double bytes_on_server = table_bytes(keys, floats);
  if (settings.tail.frequency > 0) bytes_on_server += static_cast<double>(settings.tail_cells) / servers;  // of a byte
  if (settings.embeddings) {
    const TableSpec& table = settings.embeddings->table;
    const auto adagrad = TRY(UpdaterCatalog().make(table.updater));
    const auto embedded = static_cast<uint64_t>(run.data.embedded_keys / servers);
    bytes_on_server += table_bytes(embedded, table.width + adagrad->state_width(table.width));
    if (settings.embeddings->counts) bytes_on_server += table_bytes(keys, 1);
  }
  const ValidationBytes validation = TRY(validation_bytes(*store, settings.validation, trainers_of(job)));
  const double busy = busy_threads(job, run.data);
  const double training = trainer_bytes(settings, run.data, busy * std::max(1, job.counts.workers)) * busy;
  plan_processes(job, bytes_on_server, training + (settings.model ? model_bytes(settings, run.data) : 0), validation,
                 run);
  return run;
}

// What one that trains in batch holds: while its examples are arranged, and afterwards.
struct BatchBytes {
  double arranging = 0;
  double training = 0;
};
BatchBytes batch_bytes(const DataEstimate& data, double trainers, bool newton) {
  const double examples = data.examples / trainers;
  const double features = examples * data.features;
  const double keys = data.worker_keys;
  const double block_keys = std::max(keys, examples / data.minibatch * data.minibatch_keys);
  const double value = data.has_values ? sizeof(float) : 0;
  const double group = data.has_groups ? sizeof(uint16_t) : 0;
  const auto slots = static_cast<double>(std::bit_ceil(static_cast<uint64_t>(2 * keys) + 1));
  // Of BatchExamples, and of a Localizer for their keys.
  const double loaded = features * (sizeof(uint32_t) + value + group) + examples * (sizeof(float) + sizeof(size_t));
  const double numbering = block_keys * sizeof(uint32_t) + slots * sizeof(uint32_t) + keys * (2 * 16 + 4 + sizeof(Key));
  if (newton) {
    const double matrix = features * (sizeof(uint16_t) + value) + examples * sizeof(size_t);
    return {.arranging = loaded + numbering + matrix, .training = matrix + examples * 24};
  }
  const double common = std::min(keys, data.common_keys);
  const double matrix = features * (sizeof(uint32_t) + value) + common * (sizeof(Key) + sizeof(size_t));
  // Of BlockDescent: rows with slope and score, columns with weight, step and crowding; both as they were before, too.
  const double descent = examples * (12 + 8) + common * (16 + 2 + 4 + 8) + common * (4 + 1 + 4);
  // Of requests for all keys: keys and values of the caller and in parts on their way.
  const double requests = keys * 36;
  return {.arranging = loaded + numbering + keys * 13 + matrix + requests, .training = matrix + descent};
}

Result<DryRun> plan(const TrainJob& job, const BatchSettings& settings) {
  DryRun run;
  const auto store = make_file_store();
  const int trainers = trainers_of(job);
  run.data = TRY(estimate_data(*store, settings.files,
                               {.format = settings.format,
                                .ignore_groups = settings.ignore_groups,
                                .selection = settings.selection,
                                .workers = trainers,
                                .minibatch = kRowsInBatchBlock,
                                .common_above = settings.tail.frequency}));
  const int servers = std::max(1, job.counts.servers);
  const auto keys = static_cast<uint64_t>(run.data.common_keys / servers);
  const double column = table_bytes(keys, 1);
  // Who speaks for a key, its block, and what a sketch counts: there from the beginning.
  double early = column + (run.data.has_groups ? column : 0);
  if (settings.tail.frequency > 0) early += run.data.keys * settings.tail_cells_per_key / servers;
  // Then sums of gradients, and weights that are not zero: all of them, at most.
  const double bytes_on_server = early + table_bytes(keys, 2) + column;
  const bool newton = !settings.blocks_per_feature && run.data.common_keys <= NewtonDescent::kColumnsMax &&
                      run.data.features <= BatchTrainer::kNewtonFeaturesMax;
  const BatchBytes bytes = batch_bytes(run.data, std::min<double>(trainers, run.data.parts), newton);
  const double busy = busy_threads(job, run.data);
  const double arranging = bytes.arranging * busy;
  const double training = bytes.training * busy;
  // Where all is in one process, some of the tables come when the examples have been arranged.
  const double most = std::max(arranging - (job.counts.servers > 0 ? 0 : bytes_on_server - early), training);
  plan_processes(job, bytes_on_server, most, TRY(validation_bytes(*store, settings.validation, trainers)), run);
  return run;
}

std::string megabytes(double bytes) { return fmt::format("{:.0f} MB", bytes / (1 << 20)); }

std::string passes_of(const OnlineSettings& settings) {
  return fmt::format("{} pass{}", settings.passes, settings.passes == 1 ? "" : "es");
}
std::string passes_of(const BatchSettings& settings) {
  return fmt::format("{} iterations at most", settings.iterations);
}

void print_text(const DryRun& run, const TrainJob& job, const TrainSettings& settings) {
  const std::string passes = std::visit([](const auto& one) { return passes_of(one); }, settings);
  const auto model = std::visit([](const auto& one) { return one.model; }, settings);
  fmt::print("files       {}, {}\n", run.data.files, megabytes(static_cast<double>(run.data.bytes)));
  fmt::print("examples    about {:.0f}, {:.1f} features each; {}\n", run.data.examples, run.data.features, passes);
  fmt::print("keys        about {:.0f} different ones, by a sample of {} examples\n", run.data.keys, run.data.sampled);
  fmt::print("tables      about {}: {:.0f} bytes for each key\n", megabytes(run.table_bytes), run.row_bytes);
  for (const PlannedProcesses& one : run.processes) {
    fmt::print("memory      {}{}: about {}\n", one.count == 1 ? "" : "each ", one.what, megabytes(one.bytes));
  }
  if (job.counts.servers == 0) {
    fmt::print("would start no other process, and train on {} thread{}\n", job.counts.threads,
               job.counts.threads == 1 ? "" : "s");
  } else {
    fmt::print("would start {} server and {} worker processes; each worker trains on {} thread{}\n", job.counts.servers,
               job.counts.workers, job.counts.threads, job.counts.threads == 1 ? "" : "s");
  }
  if (model) fmt::print("would write {}_S*\n", model->prefix);
}

void print_json(const DryRun& run) {
  JsonWriter writer;
  writer.begin_object().field("files", run.data.files).field("bytes", run.data.bytes);
  writer.field("sampled", run.data.sampled).field("examples", run.data.examples);
  writer.field("features_mean", run.data.features).field("keys", run.data.keys).field("table_bytes", run.table_bytes);
  writer.key("processes").begin_array();
  for (const PlannedProcesses& one : run.processes) {
    writer.begin_object().field("what", one.what).field("count", one.count).field("bytes", one.bytes).end_object();
  }
  writer.end_array().end_object();
  fmt::print("{}\n", writer.text());
}

}  // namespace

int show_dry_run(const TrainJob& job, const TrainSettings& settings, bool json) {
  if (const auto there = check_data_files(job.config, settings, *make_file_store()); !there) return fail(there.error());
  const auto run = std::visit([&](const auto& one) { return plan(job, one); }, settings);
  if (!run) return fail(run.error());
  json ? print_json(*run) : print_text(*run, job, settings);
  return kExitDone;
}

}  // namespace pscloud

#include "cli/train_dry_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "base/json.h"
#include "cli/child_process.h"
#include "cli/exit_code.h"
#include "data/text_reader.h"
#include "engine/table/table_sparse.h"
#include "learn/data_estimate.h"
#include "pscloud/updater.h"

namespace pscloud {
namespace {

// Stacks, buffers of connections, and what the allocator keeps: measured, for all jobs about the same.
constexpr double kHereSlackBytes = 7 << 20;
constexpr double kServerSlackBytes = 10 << 20;  // with the memory that it shares with workers
constexpr double kWorkerSlackBytes = 1 << 20;

// Processes of one kind.
struct PlannedProcesses {
  std::string what;
  int count = 1;
  double bytes = 0;  // of each
};

struct DryRun {
  DataEstimate data;
  double table_bytes = 0;  // on all servers together
  double row_bytes = 0;
  std::vector<PlannedProcesses> processes;
};

// What one that trains holds at a time: examples on their way to minibatches, and minibatches on theirs to the servers.
double trainer_bytes(const OnlineSettings& settings, const DataEstimate& data) {
  constexpr double kFeatureBytes = sizeof(Key) + sizeof(float);
  constexpr double kSpare = 1.5;  // vectors grow by doubling
  const double features = data.features * settings.minibatch;
  const double keys = data.minibatch_keys;
  const auto slots = static_cast<double>(std::bit_ceil(static_cast<uint64_t>(2 * keys) + 1));
  const double localizer = slots * sizeof(uint32_t) + keys * (2 * 16 + 4);
  const double minibatch = features * 2 * sizeof(float) + keys * (8 + 3 * 4);  // of OnlineWorker
  const double requests = 2 * kFeatureBytes * keys;
  return TextReader::kChunkBytes * 2 + features * 2 * kFeatureBytes * kSpare + localizer +
         (settings.max_delay + 2) * minibatch + requests;
}

Result<DryRun> plan(const TrainJob& job, const OnlineSettings& settings) {
  DryRun run;
  const double process = ChildProcess::resident_bytes_of(0);  // they are the same program
  const auto store = make_file_store();
  const int trainers = std::max(1, job.workers) * job.threads;
  run.data =
      TRY(estimate_data(*store, settings.files, settings.format, settings.selection, trainers, settings.minibatch));
  const auto updater = TRY(UpdaterCatalog().make(settings.table.updater));
  const size_t floats = settings.table.width + updater->state_width(settings.table.width);
  const int servers = std::max(1, job.servers);
  auto bytes_on_server =
      static_cast<double>(SparseTable::bytes_for(static_cast<uint64_t>(run.data.keys / servers), floats));
  // Cells of a byte; which keys it will leave out, a sample cannot tell.
  if (settings.tail.frequency > 0) bytes_on_server += static_cast<double>(settings.tail_cells) / servers;
  if (settings.embeddings) {  // of all keys, at most
    const auto keys = static_cast<uint64_t>(run.data.keys / servers);
    const TableSpec& table = settings.embeddings->table;
    const auto adagrad = TRY(UpdaterCatalog().make(table.updater));
    bytes_on_server +=
        static_cast<double>(SparseTable::bytes_for(keys, table.width + adagrad->state_width(table.width)));
    if (settings.embeddings->counts) bytes_on_server += static_cast<double>(SparseTable::bytes_for(keys, 1));
  }
  run.table_bytes = bytes_on_server * servers;
  run.row_bytes = run.table_bytes / std::max(1.0, run.data.keys);
  const double training = trainer_bytes(settings, run.data) * job.threads;
  if (job.servers == 0) {
    run.processes.push_back({"this process", 1, process + kHereSlackBytes + bytes_on_server + training});
  } else {
    run.processes.push_back({"server", job.servers, process + kServerSlackBytes + bytes_on_server});
    run.processes.push_back({"worker", job.workers, process + kWorkerSlackBytes + training});
  }
  return run;
}

std::string megabytes(double bytes) { return fmt::format("{:.0f} MB", bytes / (1 << 20)); }

void print_text(const DryRun& run, const TrainJob& job, const OnlineSettings& settings) {
  fmt::print("files       {}, {}\n", run.data.files, megabytes(static_cast<double>(run.data.bytes)));
  fmt::print("examples    about {:.0f}, {:.1f} features each; {} pass{}\n", run.data.examples, run.data.features,
             settings.passes, settings.passes == 1 ? "" : "es");
  fmt::print("keys        about {:.0f} different ones, by a sample of {} examples\n", run.data.keys, run.data.sampled);
  fmt::print("tables      about {}: {:.0f} bytes for each key\n", megabytes(run.table_bytes), run.row_bytes);
  for (const PlannedProcesses& one : run.processes) {
    fmt::print("memory      {}{}: about {}\n", one.count == 1 ? "" : "each ", one.what, megabytes(one.bytes));
  }
  if (job.servers == 0) {
    fmt::print("would start no other process, and train on {} thread{}\n", job.threads, job.threads == 1 ? "" : "s");
  } else {
    fmt::print("would start {} server and {} worker processes; each worker trains on {} thread{}\n", job.servers,
               job.workers, job.threads, job.threads == 1 ? "" : "s");
  }
  if (settings.model) fmt::print("would write {}_S*\n", settings.model->prefix);
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
  const auto* const online = std::get_if<OnlineSettings>(&settings);
  if (online == nullptr) return fail(invalid("--dry-run knows online training (async_sgd) only"));
  const auto run = plan(job, *online);
  if (!run) return fail(run.error());
  json ? print_json(*run) : print_text(*run, job, *online);
  return kExitDone;
}

}  // namespace pscloud

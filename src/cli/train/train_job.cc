#include "cli/train/train_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>

#include "base/log.h"
#include "cli/local/local_workers.h"
#include "cli/train/train_report.h"
#include "io/scratch_store.h"
#include "learn/checkpoint_files.h"
#include "learn/config.pb.h"
#include "pscloud/environment.h"

namespace pscloud {
namespace {

// For what further passes over the data need not read again: of all threads that train here, and gone when they end.
std::shared_ptr<FileStore> scratch_for(const TrainSettings& settings) {
  const auto* const online = std::get_if<OnlineSettings>(&settings);
  if (online != nullptr && (!online->cache_passes || !online->cache_prefix.empty() || !online->has_further_passes())) {
    return nullptr;
  }
  const auto* const batch = std::get_if<BatchSettings>(&settings);
  if (batch != nullptr && (!batch->cache_prefix.empty() || batch->validation.files.empty())) return nullptr;
  // Unlike /tmp it is seldom memory.
  auto scratch = ScratchStore::make(process_environment()("TMPDIR").value_or("/var/tmp"));
  if (scratch) return *std::move(scratch);
  log_warning("{}; each pass reads the files again", scratch.error().message);
  return nullptr;
}

std::function<Result<TrainProgress>(Worker&)> training(const TrainSettings& settings, const ShowProgress& show,
                                                       const Cancelled& cancelled,
                                                       const std::function<bool()>& leaving = {}) {
  return [&, leaving, scratch = scratch_for(settings)](Worker& worker) -> Result<TrainProgress> {
    const auto store = make_file_store(cancelled);
    const uint64_t ahead = std::visit([](const auto& one) { return one.ahead_bytes_max; }, settings);
    WatchedStore files = until_cancelled(*store, cancelled, ahead);
    std::optional<WatchedStore> cached;
    if (scratch != nullptr) cached.emplace(until_cancelled(*scratch, cancelled));
    FileStore* const kept = cached ? &*cached : nullptr;
    if (const auto* batch = std::get_if<BatchSettings>(&settings)) {
      return TRY(BatchTrainer(worker, files, *batch, show, cancelled, leaving, kept).run());
    }
    return TRY(OnlineTrainer(worker, files, kept, std::get<OnlineSettings>(settings), show, leaving).run());
  };
}

const std::vector<std::string>& training_files(const TrainSettings& settings) {
  return std::visit([](const auto& one) -> const auto& { return one.files; }, settings);
}

}  // namespace

Result<TrainSettings> train_settings(const TrainJob& job) {
  PS::LM::Config config;
  TRY(read_config(job.config, config));
  const auto placed = [&](auto result) {
    const std::string place = result ? "" : place_in_config(job.config, result.error().message);
    return std::move(result).at(place);
  };
  TrainSettings settings;
  if (config.has_darlin()) {
    settings = TRY(placed(batch_settings(config)));
  } else {
    settings = TRY(placed(online_settings(config)));
  }
  std::visit(
      [&](auto& one) {
        one.strict = job.config.strict;
        one.checkpoint.resume = job.resume;
      },
      settings);
  return settings;
}

std::vector<std::string> warnings_of(const TrainSettings& settings) {
  const auto draws = [](const std::vector<FilterSpec>& filters) {
    return std::ranges::any_of(filters, [](const FilterSpec& filter) {
      return filter.kind == FilterKind::kFixedPoint || filter.kind == FilterKind::kNoise;
    });
  };
  constexpr const char* kDiffer = "FIXING_FLOAT and NOISE draw random numbers: no two runs give the same model";
  std::vector<std::string> warnings;
  if (const auto* online = std::get_if<OnlineSettings>(&settings)) {
    const bool drawn = draws(online->table.push_filters) || draws(online->table.pull_filters);
    if (online->synchronous && drawn) warnings.push_back(fmt::format("async_sgd.synchronous: {}", kDiffer));
  } else {
    const auto& batch = std::get<BatchSettings>(settings);
    warnings = batch.no_effect;
    if (draws(batch.filters)) warnings.push_back(fmt::format("darlin.comm_filter: {}", kDiffer));
  }
  return warnings;
}

Result<TrainProgress> join_train_job(const TrainSettings& settings, const NodeOptions& options, int threads,
                                     const ShowProgress& show, const Cancelled& cancelled,
                                     const std::function<bool()>& leaving) {
  return join_workers(options, threads, training(settings, show, cancelled, leaving));
}

Result<> check_model_output(const TrainSettings& settings, const Cancelled& cancelled) {
  const auto model = std::visit([](const auto& one) { return one.model; }, settings);
  if (!model) return {};
  return make_file_store(cancelled)->check_create(model->prefix + "_S0").at("model_output");
}

Result<> check_data_files(const ConfigFlags& config, const TrainSettings& settings, FileStore& store) {
  TRY(check_config_files(config, store, training_files(settings), "training_data.file"));
  const auto& validation = std::visit([](const auto& one) -> const auto& { return one.validation.files; }, settings);
  return check_config_files(config, store, validation, "validation_data.file");
}

Result<> check_train_files(const ConfigFlags& config, const TrainSettings& settings, const Cancelled& cancelled) {
  const auto store = make_file_store(cancelled);
  TRY(check_data_files(config, settings, *store));
  TRY(std::visit([&](const auto& one) { return check_checkpoints_before_start(*store, one.checkpoint); }, settings));
  return check_model_output(settings, cancelled);
}

Result<TrainProgress> run_train_job(const TrainJob& job, const TrainSettings& settings, const ShowProgress& show,
                                    const Cancelled& cancelled) {
  const WorkerCounts& counts = job.counts;
  if (counts.servers == 0) return run_local_workers(counts.threads, cancelled, training(settings, show, cancelled));
  std::vector<std::string> words{"train", "--as-worker", "--threads", std::to_string(counts.threads)};
  std::ranges::copy(words_of(job.config), std::back_inserter(words));
  if (job.resume) words.emplace_back("--resume");
  const auto show_text = [&](const std::string& text) -> Result<> {
    show(TRY(decode_progress(text)));
    return {};
  };
  return decode_progress(TRY(run_worker_processes(counts, words, show_text, cancelled)));
}

}  // namespace pscloud

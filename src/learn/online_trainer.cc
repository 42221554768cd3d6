#include "learn/online_trainer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "base/log.h"
#include "learn/checkpoint.h"
#include "learn/data_selection.h"
#include "learn/evaluation.h"
#include "learn/model_files.h"
#include "learn/shared_work.h"
#include "learn/table_scan.h"

namespace pscloud {
namespace {

constexpr int kCountShare = 20;  // to count the weights takes no more than one twentieth of the time

// Places in the tally of progress.
enum ProgressPlace : uint32_t {
  kDoneExamples,
  kDoneLoss,
  kDoneAuc,
  kDoneRight,
  kDoneBadLines,  // only in checkpoints: what passes have counted
  kDoneBytes,
  kDoneMinibatches,
  kDonePullSeconds,
  kDonePushSeconds,
  kDonePlaces
};
static_assert(kDonePlaces == kProgressPlaces);
constexpr const char* kProgress = "progress";
constexpr const char* kCheckpoints = "checkpoints";  // how many were begun

}  // namespace

std::optional<double> OnlineProgress::update_ratio() const {
  if (!(change.weights2 > 0)) return std::nullopt;
  return std::sqrt(1e-20 + change.change2) / std::sqrt(change.weights2);
}

OnlineTrainer::OnlineTrainer(Worker& worker, FileStore& store, FileStore* scratch, const OnlineSettings& settings,
                             std::function<void(const OnlineProgress&)> show, std::function<bool()> leaving)
    : worker_(worker),
      store_(store),
      scratch_(scratch),
      settings_(settings),
      show_(std::move(show)),
      leaving_(std::move(leaving)),
      start_(clock_.now()),
      next_report_(start_ + std::chrono::seconds(settings.report_seconds)),
      next_count_(start_) {}

Result<OnlineProgress> OnlineTrainer::run() {
  if (settings_.synchronous) steps_ = TRY(LockStep::make(worker_));
  const std::vector<SelectedFile> files =
      TRY(select_files(worker_, store_, settings_.files, settings_.format, settings_.selection, "training_data"));
  progress_.bytes_all = selected_bytes(files, settings_.selection) * settings_.passes;
  const OnlineData data = TRY(online_data(worker_, store_, files, settings_));
  const std::vector<std::string> validation = TRY(validation_parts(worker_, store_, settings_.validation));

  const Consistency consistency = settings_.synchronous ? Consistency::bsp() : Consistency::async();
  model_ = TRY(create_model(worker_, settings_.table, settings_.embeddings, consistency));
  if (model_.embedded) progress_.dim = model_.embedded->embeddings.spec.width;
  if (settings_.tail.frequency > 0) {
    tail_ = TRY(TailFilter::make(worker_, "tail counts", settings_.tail, settings_.tail_cells, consistency));
  }
  start_at_ = TRY(start_online(worker_, store_, settings_, model_, kept_tables(), data));
  if (start_at_.sums.empty()) start_at_.sums.resize(kDonePlaces);
  progress_.resumed = static_cast<uint64_t>(start_at_.sums[kDoneExamples]);
  different_ = start_at_.different;
  progress_.bad_lines = bad_lines_ = static_cast<uint64_t>(start_at_.sums[kDoneBadLines]);
  repeated_parts_ = start_at_.repeated_parts;
  early_ = start_at_.early;
  online_.emplace(
      worker_, model_, store_, settings_, [this](const MinibatchReport& one) { return note(one); }, cache());
  if (tail_) online_->leave_out_tail(&*tail_);
  online_->measure_next_push();
  if (steps_) {
    online_->go_in_step(&*steps_);
    last_checkpoint_ = start_at_.checkpoint;
    ranks_ = TRY(steps_->end_round({})).ranks;
  }
  set_next_checkpoint();
  for (uint32_t pass = start_at_.pass; pass <= settings_.passes; ++pass) {
    const Time begin = clock_.now();
    TRY(steps_ ? train_rounds(pass, data) : train_pass(pass, data));
    if (different_ == 0) return no_examples("training_data", bad_lines_);
    progress_.pass_seconds.push_back(in_seconds(clock_.now() - begin));
    if (validation.empty()) continue;
    TRY(validate_after(pass, validation));
    if (early_.is_enough(progress_.validation_logloss, settings_.validation.early_stop) && pass < settings_.passes) {
      progress_.stopped = pass;
      break;
    }
  }
  if (settings_.model) {
    // In step the model is the same in each run, and so shall its files be.
    const ModelOrder order = steps_ ? ModelOrder::kByKey : ModelOrder::kAsTheyCame;
    progress_.nonzero = TRY(save_model(worker_, model_, store_, *settings_.model, order));
    if (settings_.checkpoint.enabled()) TRY(remove_checkpoints(worker_, store_, settings_.checkpoint));
  } else {
    TRY(count_weights());
  }
  TRY(count_embeddings());
  TRY(report());
  progress_.repeated = progress_.examples - different_;
  progress_.repeated_parts = repeated_parts_;
  return progress_;
}

std::string OnlineTrainer::pass_name(uint32_t pass) { return fmt::format("pass {}", pass); }

// The numbers of those that are not done, among all parts.
std::vector<uint32_t> OnlineTrainer::parts_left(uint32_t pass, size_t parts) const {
  std::vector<uint32_t> left;
  for (uint32_t i = 0; i < parts; ++i) {
    if (pass != start_at_.pass || start_at_.done.empty() || !start_at_.done[i]) left.push_back(i);
  }
  return left;
}

Result<> OnlineTrainer::train_pass(uint32_t pass, const OnlineData& data) {
  const std::string pool = pass_name(pass);
  const std::vector<std::string> parts = items_of_pass(data.parts, {.shuffle = settings_.selection.shuffle}, pass);
  const std::vector<uint32_t> numbers = parts_left(pass, parts.size());
  std::vector<std::string> items;
  for (const uint32_t number : numbers) items.push_back(parts[number]);
  const auto train_one = [&](const WorkItem& item) -> Result<std::vector<Addend>> {
    const uint64_t before = examples_;
    // Not with what is finished: that counts once, be it by who had it first.
    if (item.repeated) TRY(worker_.tally(pool, std::vector<Addend>{{kPassRepeated, 1}}, 0, 0));
    TRY(train_part(TRY(part_of_text(item.text)), pass));
    const auto bad_lines = static_cast<double>(online_->examples().bad_lines().count);
    TRY(pause_if_due(pool));
    std::vector<Addend> addends{{kPassExamples, static_cast<double>(examples_ - before)}};
    const bool ours = item.number < items.size() && items[item.number] == item.text;
    if (ours) addends.push_back({kPassDone + numbers[item.number], 1});
    if (ours ? counts_bad_lines(pass, parts, numbers[item.number]) : pass == 1) {
      addends.push_back({kPassBadLines, bad_lines});
    }
    return addends;
  };
  Sharing sharing;
  if (settings_.checkpoint.enabled()) {
    sharing.slow = SlowWork::kAwait;  // in a pause nobody pushes
    sharing.on_pause = [&](uint64_t number) { return write_down(number, pass, data); };
  }
  // It goes when it has no part, and after the checkpoint that it has asked for.
  bool left = false;
  sharing.leaves = [&](bool has_item) {
    // Nothing is given before the pause that it has asked for is over: the others were quicker with the checkpoint.
    if (has_item) kept_before_leaving_ |= asked_before_leaving_;
    left = is_leaving() && (!settings_.checkpoint.enabled() || kept_before_leaving_);
    return left;
  };
  TRY(share_work(worker_, pool, items, train_one, sharing));
  return left ? leave_early() : count_pass(pass);
}

Result<> OnlineTrainer::leave_early() {
  TRY(worker_.give_up(kMachineGoes));
  return job_failed("left before the end: {}", kMachineGoes);
}

// After a pass. Each part has added to this once, whoever has done it, and however often.
Result<> OnlineTrainer::count_pass(uint32_t pass) {
  const std::vector<double> sums = TRY(worker_.tally(pass_name(pass), {}, 0, kPassDone));
  different_ += static_cast<uint64_t>(sums[kPassExamples]);
  repeated_parts_ += static_cast<uint64_t>(sums[kPassRepeated]);
  progress_.bad_lines = bad_lines_ += static_cast<uint64_t>(sums[kPassBadLines]);
  return {};
}

// All passes have the same lines, and so have the times that one pass has a part.
bool OnlineTrainer::counts_bad_lines(uint32_t pass, std::span<const std::string> parts, uint32_t number) const {
  if (pass > 1) return false;
  return settings_.selection.replica == 1 || std::ranges::find(parts, parts[number]) - parts.begin() == number;
}

// What a checkpoint has.
std::vector<Table> OnlineTrainer::kept_tables() const {
  std::vector<Table> tables = tables_of(model_);
  if (tail_) tables.push_back(tail_->counts());
  return tables;
}

CachePlace OnlineTrainer::cache() const {
  if (!settings_.cache_prefix.empty()) return {&store_, settings_.cache_prefix};
  return {scratch_};
}

// For any of the workers to say: one may be at a packed file for long. So does one that leaves.
bool OnlineTrainer::is_checkpoint_due() const {
  return settings_.checkpoint.enabled() && (is_leaving() || clock_.now() >= next_checkpoint_);
}

// While this worker has a part: the pause comes when all have done theirs. Until then others may ask for one too, which
// has no effect.
Result<> OnlineTrainer::pause_if_due(const std::string& pool) {
  if (!is_checkpoint_due()) return {};
  const std::vector<Addend> one{{0, 1}};
  const auto drawn = static_cast<uint64_t>(TRY(worker_.tally(kCheckpoints, one, 0, 1)).front());
  const bool leaving = is_leaving();
  TRY(worker_.pause_work(pool, start_at_.checkpoint + drawn));
  asked_before_leaving_ = leaving;
  // Here too: others may be quicker with the checkpoint than this worker is with its next question.
  set_next_checkpoint();
  return {};
}

void OnlineTrainer::set_next_checkpoint() {
  next_checkpoint_ = clock_.now() + std::chrono::seconds(settings_.checkpoint.every_seconds);
}

// In a pause: nothing is on its way, and all that was done is in the tallies.
Result<> OnlineTrainer::write_down(uint64_t number, uint32_t pass, const OnlineData& data) {
  const auto describe = [&](PS::LM::Checkpoint& checkpoint) -> Result<> {
    const size_t parts = data.parts.size();
    const auto count = kPassDone + static_cast<uint32_t>(parts);
    const std::vector<double> of_pass = TRY(worker_.tally(pass_name(pass), {}, 0, count));
    OnlinePosition position{.checkpoint = number,
                            .pass = pass,
                            .done = {},
                            .sums = {},
                            .different = 0,
                            .repeated_parts = 0,
                            .early = early_};
    position.different = different_ + static_cast<uint64_t>(of_pass[kPassExamples]);
    position.sums = TRY(worker_.tally(kProgress, {}, 0, kDonePlaces));
    for (uint32_t i = 0; i < kDonePlaces; ++i) position.sums[i] += start_at_.sums[i];
    position.sums[kDoneBadLines] = static_cast<double>(bad_lines_) + of_pass[kPassBadLines];
    position.repeated_parts = repeated_parts_ + static_cast<uint64_t>(of_pass[kPassRepeated]);
    if (pass == start_at_.pass) position.done = start_at_.done;
    position.done.resize(parts);
    for (size_t i = 0; i < parts; ++i) position.done[i] = position.done[i] || of_pass[kPassDone + i] > 0;
    put_position(position, data, *checkpoint.mutable_online());
    return {};
  };
  TRY(write_checkpoint(worker_, store_, settings_.checkpoint, number, kept_tables(), describe));
  kept_before_leaving_ = is_leaving();
  set_next_checkpoint();
  return {};
}

Result<> OnlineTrainer::train_part(const FilePart& part, uint32_t pass) {
  // A place that the settings name is for the next run, too.
  const bool last = pass == settings_.passes && settings_.selection.replica == 1 && settings_.cache_prefix.empty();
  TRY(online_->train(part, {.number = pass, .last = last}));
  // The lines of further passes are the same.
  if (pass == 1 || settings_.strict) TRY(complaints_.complain(store_, part.uri, online_->examples(), settings_.strict));
  return report();  // what is done shall be seen, though others may be at it for long
}

Result<> OnlineTrainer::note(const MinibatchReport& one) {
  examples_ += one.examples;
  unreported_.examples += one.examples;
  unreported_.loss += one.loss;
  unreported_.right += one.right;
  unreported_.auc += one.auc * static_cast<double>(one.examples);
  unreported_.pull_seconds += one.pull_seconds;
  unreported_.push_seconds += one.push_seconds;
  ++minibatches_unreported_;
  // Now and then, so that whenever something is shown it is of late.
  if (std::has_single_bit(++minibatches_)) online_->measure_next_push();
  if (clock_.now() < next_report_) return {};
  return report();
}

// Adds up with the other workers what has been done since the last time.
Result<> OnlineTrainer::add_up() {
  const MinibatchReport done = std::exchange(unreported_, {.auc = 0});
  const uint64_t bytes = online_->examples().stored_bytes();
  const std::vector<Addend> addends = {
      {kDoneExamples, static_cast<double>(done.examples)},
      {kDoneLoss, done.loss},
      {kDoneAuc, done.auc},
      {kDoneRight, static_cast<double>(done.right)},
      {kDoneBytes, static_cast<double>(bytes - std::exchange(bytes_reported_, bytes))},
      {kDoneMinibatches, static_cast<double>(std::exchange(minibatches_unreported_, 0))},
      {kDonePullSeconds, done.pull_seconds},
      {kDonePushSeconds, done.push_seconds},
  };
  std::vector<double> sums = TRY(worker_.tally(kProgress, addends, 0, kDonePlaces));
  for (uint32_t i = 0; i < kDonePlaces; ++i) sums[i] += start_at_.sums[i];
  progress_.examples = static_cast<uint64_t>(sums[kDoneExamples]);
  progress_.loss = sums[kDoneLoss];
  progress_.auc = sums[kDoneAuc];
  progress_.right = sums[kDoneRight];
  progress_.bytes = static_cast<uint64_t>(sums[kDoneBytes]);
  progress_.minibatches = static_cast<uint64_t>(sums[kDoneMinibatches]);
  progress_.pull_seconds = sums[kDonePullSeconds];
  progress_.push_seconds = sums[kDonePushSeconds];
  progress_.seconds = in_seconds(clock_.now() - start_);
  progress_.change = online_->last_change();
  return {};
}

// One of the workers shows what all of them have done.
Result<> OnlineTrainer::report() {
  TRY(add_up());
  const Time now = clock_.now();
  if (now < next_report_) return {};
  next_report_ = now + std::chrono::seconds(settings_.report_seconds);
  online_->measure_next_push();
  if (!worker_.is_first()) return {};
  if (now >= next_count_) {
    TRY(count_weights());
    TRY(count_embeddings());
    const Time end = clock_.now();
    next_count_ = end + (end - now) * kCountShare;
  }
  show_(progress_);
  return {};
}

Result<> OnlineTrainer::validate_after(uint32_t pass, std::span<const std::string> parts) {
  // Before others can be at the next pass: what is shown with the result is of the same moment.
  if (worker_.is_first()) TRY(add_up());
  const std::string name = fmt::format("validation {}", pass);
  CachePlace cached = cache();
  cached.prefix += "validation-";
  const Scored scored =
      TRY(score_parts(worker_, model_, store_, parts, settings_.validation.format, settings_.strict, name, cached));
  progress_.validated = pass;
  progress_.validation_auc = scored.auc;
  progress_.validation_accuracy = scored.accuracy;
  progress_.validation_logloss = scored.logloss;
  if (!worker_.is_first()) return {};
  TRY(count_weights());
  TRY(count_embeddings());
  show_(progress_);
  return {};
}

Result<> OnlineTrainer::count_weights() {
  progress_.nonzero = TRY(count_rows(worker_, model_.weights)).nonzero;
  return {};
}

Result<> OnlineTrainer::count_embeddings() {
  if (model_.embedded) progress_.embeddings = TRY(count_rows(worker_, model_.embedded->embeddings)).rows;
  return {};
}

}  // namespace pscloud

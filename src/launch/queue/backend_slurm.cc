#include "launch/queue/backend_slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <thread>

#include "base/log.h"
#include "base/suggest.h"
#include "launch/bundle/bundle.h"
#include "launch/process/tool.h"
#include "launch/rendezvous/rendezvous_file.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using Now = TaskWatch::Now;

constexpr seconds kSlurmPatience{60};  // of any of its programs: a busy controller takes its time
constexpr seconds kAskFirst{2};
constexpr seconds kAskLast{15};
constexpr seconds kSayPendingAfter{5};
constexpr seconds kLastWordsOfJob{10};   // a job has ended; its tasks' last messages may still be on their way
constexpr seconds kEndByItself{5};       // all tasks have ended, so the job does
constexpr seconds kCancelPatience{120};  // for a job to be gone that was cancelled: KillWait, epilogs
constexpr const char* kSlurmJobKind = "slurm_job";
constexpr const char* kSlurmOutput = "slurm.out";

std::string joined(const std::vector<SlurmState>& states) {
  std::set<std::string> words;
  for (const SlurmState& state : states) {
    const bool says_why = !state.reason.empty() && state.reason != "None";
    words.insert(says_why ? fmt::format("{} ({})", state.state, state.reason) : state.state);
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

// The job and its components; none if Slurm does not know it any more.
Result<std::vector<SlurmState>> states_of(const std::string& job, const std::stop_token& stop = {}) {
  const auto output =
      TRY(run_tool({"squeue", "--noheader", "--states=all", "--jobs=" + job, fmt::format("--format={}", kSqueueFormat)},
                   "", kSlurmPatience, stop));
  if (output.code == 0) return parse_squeue(output.out);
  if (output.err.find("Invalid job id") != std::string::npos) return std::vector<SlurmState>{};
  return unavailable("squeue ended with code {}: {}", output.code, output.err);
}

// states_of() in a thread of its own: a busy controller may take a minute. One that is destroyed before is not waited
// for.
class StatesQuestion {
 public:
  explicit StatesQuestion(const std::string& job)
      : thread_([this, job](const std::stop_token& stop) {
          answer_ = states_of(job, stop);
          answered_ = true;
        }) {}

  bool is_answered() const { return answered_; }
  const Result<std::vector<SlurmState>>& answer() const { return *answer_; }  // once it is

 private:
  std::optional<Result<std::vector<SlurmState>>> answer_;  // of the thread, until `answered_`
  std::atomic<bool> answered_ = false;
  std::jthread thread_;  // the last: it begins after the others and ends before them
};

class SlurmBackend final : public QueueBackend {
 public:
  SlurmBackend(SlurmOptions options, FolderTimes times, std::string shared, std::string program, std::string run_folder)
      : options_(std::move(options)),
        times_(times),
        shared_(std::move(shared)),
        program_(std::move(program)),
        run_folder_(std::move(run_folder)) {}

  Result<> check(const Plan& plan) override;
  Result<std::string> preview(const Plan& plan) override;
  Result<> start(const Plan& plan, Ledger& ledger) override;
  Result<std::vector<std::string>> clean(const Plan& plan, Ledger& ledger) override;
  Result<std::vector<std::string>> shell(const Plan& plan, TaskId task) override;

 private:
  Now ask_queue(Now now, std::vector<TaskEvent>& events) override;
  void take_states(const std::vector<SlurmState>& states, Now now);
  void say_why_pending(const std::vector<SlurmState>& states, Now now);
  void say_complaint();
  Result<std::optional<Bundle>> needed_bundle() const;
  std::vector<std::string> agent_words(const std::string& folder, const std::optional<Bundle>& bundle) const;
  std::string first_complaint() const;

  const SlurmOptions options_;
  const FolderTimes times_;
  const std::string shared_;
  const std::string program_;  // empty: it is brought
  const std::string run_folder_;

  std::string job_;  // its number
  std::string output_;
  std::vector<SlurmComponent> components_;
  std::vector<TaskId> tasks_;
  Now submitted_{};
  std::string said_;       // why it waits, as it was told last
  std::string complaint_;  // of the job, as it was told
  seconds ask_every_ = kAskFirst;
  std::optional<StatesQuestion> question_;  // while it is under way
  Backoff look_for_answer_;
};

// The numbers of the user's jobs that wait or run and are called so.
Result<std::vector<std::string>> jobs_named(const std::string& name) {
  std::vector<std::string> jobs = lines_of_tool(
      TRY(tool_answer({"squeue", "--noheader", "--me", "--name=" + name, "--format=%A"}, "", kSlurmPatience)));
  // As numbers: the components of a job have theirs one after the other.
  std::ranges::sort(jobs, {}, [](const std::string& job) { return std::pair(job.size(), job); });
  return jobs;
}

Result<> check_partition(const std::string& wanted) {
  const std::vector<std::string> known =
      lines_of_tool(TRY(tool_answer({"sinfo", "--noheader", "--format=%R"}, "", kSlurmPatience)));
  if (wanted.empty() || std::ranges::find(known, wanted) != known.end()) return {};
  const std::string near = suggest(wanted, known);
  return invalid("Slurm has no partition '{}'{}; there are {}", wanted,
                 near.empty() ? "" : fmt::format("; did you mean '{}'?", near), fmt::join(known, ", "));
}

// Waits until no job of this name is there; false when time is over.
Result<bool> wait_until_gone(const std::string& name, steady_clock::time_point deadline) {
  Backoff pause;
  while (true) {
    if (TRY(jobs_named(name)).empty()) return true;
    if (steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(pause.next());
  }
}

Result<> SlurmBackend::check(const Plan& plan) {
  const auto version = run_tool({"sbatch", "--version"}, "", kSlurmPatience);
  if (!version) {
    if (version.error().code != Code::kNotFound) return version.error();
    return unavailable("there is no sbatch here: run this where jobs are submitted to Slurm");
  }
  std::vector<std::string> wrong;
  Code code = Code::kInvalid;
  if (const auto partition = check_partition(options_.partition); !partition) {
    wrong.push_back(partition.error().message);
    code = partition.error().code;
  }
  if (const auto files = check_files(plan); !files) wrong.push_back(files.error().message);
  if (const auto folder = check_shared(shared_, "slurm:folder"); !folder) wrong.push_back(folder.error().message);
  if (wrong.empty()) return {};
  return Error{code, fmt::format("{}", fmt::join(wrong, "\n"))};
}

Result<std::string> SlurmBackend::preview(const Plan& plan) {
  const std::string folder = fmt::format("{}/{}", shared_.empty() ? "RUN" : shared_, plan.job);
  std::string text = "# ";
  for (const std::string& word : sbatch_words(plan, options_, fmt::format("{}/{}", folder, kSlurmOutput))) {
    text += sh_word(word) + " ";
  }
  text += "<<'EOF'\n";
  return text + slurm_script(slurm_components(plan, options_.one_shape), agent_words(folder, TRY(needed_bundle())));
}

// What must be brought; none if the machines have the program.
Result<std::optional<Bundle>> SlurmBackend::needed_bundle() const {
  if (!program_.empty()) return std::optional<Bundle>();
  return std::optional(TRY(own_bundle()));
}

std::vector<std::string> SlurmBackend::agent_words(const std::string& folder,
                                                   const std::optional<Bundle>& bundle) const {
  std::vector<std::string> words = {program_};
  if (bundle) {
    // On a machine that does not see the folder Slurm would only say that there is no such file.
    words = {
        "/bin/sh", "-c",
        "[ -x \"$1\" ] || { echo \"pscloud: there is no $1 on this machine; it must be on a disk that all machines "
        "share\" >&2; exit 1; }; exec \"$@\"",
        "sh"};
    for (std::string& word : bundle_command(*bundle, fmt::format("{}/{}", folder, kBundleFolder))) {
      words.push_back(std::move(word));
    }
  }
  for (std::string& word : folder_arguments(folder, times_)) words.push_back(std::move(word));
  return words;
}

Result<> SlurmBackend::start(const Plan& plan, Ledger& ledger) {
  const FolderWatch* const watch = TRY(meet_in_folder(plan, shared_, times_, ledger));
  output_ = watch->folder().path_of(kSlurmOutput);
  components_ = slurm_components(plan, options_.one_shape);
  for (const PlannedTask& task : plan.tasks) tasks_.push_back(task.spec.id);

  const auto brought = TRY(needed_bundle());
  if (brought) {
    TRY(make_private_folder(watch->folder().path_of(kBundleFolder)));
    TRY(copy_bundle(*brought, watch->folder().path_of(kBundleFolder)));
  }
  const uint64_t entry = TRY(ledger.intend(kSlurmJobKind, {{"name", slurm_job_name(plan)}}));
  const std::string script = slurm_script(components_, agent_words(watch->folder().path(), brought));
  const std::string answer = TRY(tool_answer(sbatch_words(plan, options_, output_), script, kSlurmPatience));
  job_ = answer.substr(0, answer.find_first_of(";\n"));
  if (job_.empty()) return unavailable("sbatch did not tell the number of the job: '{}'", answer);
  submitted_ = steady_clock::now();
  ask_at_ = submitted_ + ask_every_;
  return ledger.learn(entry, {{"job", job_}});
}

Now SlurmBackend::ask_queue(Now now, std::vector<TaskEvent>& events) {
  (void)events;
  if (!question_) {
    question_.emplace(job_);
    look_for_answer_.reset();
  }
  if (!question_->is_answered()) return now + look_for_answer_.next();
  if (const auto& states = question_->answer()) {
    take_states(*states, steady_clock::now());
    say_why_pending(*states, now);
    say_complaint();
  } else {
    log_warning("{}", states.error().message);
  }
  question_.reset();
  ask_every_ = std::min(ask_every_ * 2, kAskLast);
  return steady_clock::now() + ask_every_;
}

void SlurmBackend::take_states(const std::vector<SlurmState>& states, Now now) {
  for (size_t number = 0; number < components_.size(); ++number) {
    const std::string id = components_.size() == 1 ? job_ : fmt::format("{}+{}", job_, number);
    const auto state = std::ranges::find(states, id, &SlurmState::id);
    if (state != states.end() && !state->ended()) continue;
    const std::string what = state == states.end() ? "is not known any more" : "is " + joined({*state});
    const std::string said = first_complaint();
    const std::string why =
        fmt::format("job {} of Slurm {}; {}", id, what,
                    said.empty() ? fmt::format("is {} on a disk that all its machines share?", shared_) : said);
    for (int i = components_[number].first; i < components_[number].first + components_[number].count; ++i) {
      watch_->presume_lost(tasks_.at(static_cast<size_t>(i)), why, now + kLastWordsOfJob);
    }
  }
}

// A heterogeneous job wants other machines for each component: who has too few waits for ever, and should hear of it.
void SlurmBackend::say_why_pending(const std::vector<SlurmState>& states, Now now) {
  if (now - submitted_ < kSayPendingAfter || std::ranges::none_of(states, &SlurmState::pending)) return;
  std::string why = fmt::format("job {} of Slurm is {}", job_, joined(states));
  if (components_.size() > 1) {
    why += fmt::format("; its {} components each need machines of their own (slurm:shape=one lets them share)",
                       components_.size());
  }
  if (why == said_) return;
  said_ = why;
  log_info("{}", why);
}

// An agent that cannot begin is missed only when all should be there: what it wrote is told before.
void SlurmBackend::say_complaint() {
  const std::string complaint = first_complaint();
  if (complaint == complaint_) return;
  complaint_ = complaint;
  log_info("job {} of Slurm says: {}", job_, complaint_);
}

// The first line that Slurm itself or a broken agent wrote.
std::string SlurmBackend::first_complaint() const {
  constexpr uint64_t kLineShown = 500;
  const size_t slash = output_.rfind('/');
  const auto folder = SharedFolder::open(output_.substr(0, slash));
  if (!folder) return {};
  const auto text = folder->read_from(output_.substr(slash + 1), 0, kLineShown);
  return text ? text->substr(0, text->find('\n')) : std::string();
}

Result<std::vector<std::string>> SlurmBackend::clean(const Plan& plan, Ledger& ledger) {
  (void)plan;
  question_.reset();
  std::vector<std::string> left;
  // The job first: its agents still write to the folder.
  for (const LedgerEntry& entry : ledger.remaining()) {
    if (entry.kind != kSlurmJobKind) continue;
    const std::string& name = entry.what.at("name");
    // One that ends by itself is not to be called cancelled for ever in the accounts.
    const auto states = job_.empty() ? std::vector<SlurmState>() : TRY(states_of(job_));
    const bool may_end = !job_.empty() && std::ranges::none_of(states, &SlurmState::pending);
    const bool ends = may_end && TRY(wait_until_gone(name, steady_clock::now() + kEndByItself));
    if (!ends) {
      for (const std::string& job : TRY(jobs_named(name))) TRY(tool_answer({"scancel", job}, "", kSlurmPatience));
    }
    if (!ends && !TRY(wait_until_gone(name, steady_clock::now() + kCancelPatience))) {
      left.push_back(fmt::format("the job {} of Slurm (`scancel --name={}`): it does not end", name, name));
      continue;
    }
    TRY(ledger.gone(entry.number));
  }
  for (const LedgerEntry& entry : ledger.remaining()) {
    if (entry.kind != kFolderKind || !left.empty()) continue;
    const std::string path = entry.what.at("path");
    if (const auto folder = SharedFolder::open(path)) {
      // What Slurm had to say belongs to the logs of the run.
      const auto said = folder->read(kSlurmOutput);
      const auto run = SharedFolder::open(run_folder_);
      if (said && !said->empty() && run) TRY(run->write(kSlurmOutput, *said));
    }
    if (const auto removed = remove_folder(entry, ledger); !removed) left.push_back(removed.error().message);
  }
  return left;
}

Result<std::vector<std::string>> SlurmBackend::shell(const Plan& plan, TaskId task) {
  const SharedFolder folder = TRY(SharedFolder::open(fmt::format("{}/{}", shared_, plan.job)));
  const PlannedTask* const planned = plan.find(task);
  if (planned == nullptr) return not_found("{} is none of {}", task.text(), plan.run);
  const auto text = folder.read(folder_file::arrival(task, planned->spec.attempt));
  if (!text) return unavailable("{} has not begun yet", task.text());
  const Arrival arrival = TRY(parse_arrival(*text));

  const auto components = slurm_components(plan, options_.one_shape);
  const auto number = static_cast<int>(planned - plan.tasks.data());
  const auto jobs = TRY(jobs_named(slurm_job_name(plan)));
  size_t component = 0;
  while (component + 1 < components.size() && components[component + 1].first <= number) ++component;
  if (component >= jobs.size()) return unavailable("the job of {} has ended", plan.run);
  return std::vector<std::string>{"srun",  "--jobid=" + jobs[component], "--overlap", "--ntasks=1",
                                  "--pty", "--nodelist=" + arrival.host, "bash",      "--login"};
}

}  // namespace

Result<std::unique_ptr<Backend>> make_slurm_backend(const Cluster& cluster, const std::string& run_folder) {
  SlurmOptions options{.partition = option_of(cluster, "partition"),
                       .account = option_of(cluster, "account"),
                       .qos = option_of(cluster, "qos"),
                       .constraint = option_of(cluster, "constraint"),
                       .reservation = option_of(cluster, "reservation"),
                       .time = option_of(cluster, "time")};
  const std::string shape = option_of(cluster, "shape");
  if (!shape.empty() && shape != "one" && shape != "roles") {
    return invalid("slurm: the shape is 'one' or 'roles', not '{}'", shape);
  }
  options.one_shape = shape == "one";
  FolderTimes times;
  times.lost_after = TRY(seconds_option(cluster, "lost_after", times.lost_after));
  times.heartbeat = std::min(times.heartbeat, times.lost_after / 4);
  std::string shared = option_of(cluster, "folder");
  if (shared.empty()) shared = run_folder;
  shared = absolute_path(shared);
  return std::make_unique<SlurmBackend>(std::move(options), times, std::move(shared), option_of(cluster, "program"),
                                        run_folder);
}

}  // namespace pscloud

#include "launch/queue/backend_condor.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "base/log.h"
#include "base/text.h"
#include "launch/agent/own_address.h"
#include "launch/bundle/bundle.h"
#include "launch/process/tool.h"
#include "launch/queue/condor_job.h"
#include "launch/queue/condor_log.h"
#include "launch/rendezvous/socket_watch.h"
#include "net/certificate.h"
#include "net/socket.h"

namespace pscloud {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using Now = TaskWatch::Now;

constexpr seconds kCondorPatience{60};
constexpr milliseconds kReadLogEvery{500};
constexpr seconds kLastWordsOfTask{10};  // its job has ended; what it said last may still be on its way
constexpr seconds kRemovePatience{120};
constexpr std::chrono::hours kCertificateTime{24 * 30};
constexpr const char* kCondorJobKind = "condor_job";
constexpr const char* kTlsFolder = "tls";
constexpr const char* kAgentScript = "agent.sh";

struct CondorOptions {
  std::string shared = {};  // empty: they connect
  std::string address = {};
  uint16_t port = 0;
  std::string program = {};
  std::string requirements = {};
  std::string group = {};
  FolderTimes times = {};
};

std::string constraint_of(const std::string& batch_name) { return fmt::format("JobBatchName == \"{}\"", batch_name); }

// The jobs that are still in the queue, "12.0".
Result<std::vector<std::string>> jobs_of(const std::string& batch_name) {
  return lines_of_tool(TRY(tool_answer({"condor_q", "-constraint", constraint_of(batch_name), "-format", "%d.",
                                        "ClusterId", "-format", "%d\n", "ProcId"},
                                       "", kCondorPatience)));
}

class CondorBackend final : public QueueBackend {
 public:
  CondorBackend(CondorOptions options, std::string run_folder)
      : options_(std::move(options)),
        run_folder_(std::move(run_folder)),
        own_folder_((run_folder_.empty() ? "RUN" : run_folder_) + "/condor") {}

  Result<> check(const Plan& plan) override;
  Result<std::string> preview(const Plan& plan) override;
  Result<> start(const Plan& plan, Ledger& ledger) override;
  Result<std::vector<std::string>> clean(const Plan& plan, Ledger& ledger) override;
  Result<std::vector<std::string>> shell(const Plan& plan, TaskId task) override;

 private:
  Now ask_queue(Now now, std::vector<TaskEvent>& events) override;
  void take(const CondorEvent& event, Now now, std::vector<TaskEvent>& events);
  Result<CondorSubmission> submission_of(const Plan& plan, const std::string& launcher) const;
  Result<> add_program(const Plan& plan, CondorSubmission& submission) const;
  Result<std::string> meet_by_socket(const Plan& plan);
  Result<> bring_program(const Plan& plan) const;
  // Of the launcher and the agents, if there is a shared disk.
  std::string meeting_folder(const Plan& plan) const { return fmt::format("{}/{}", options_.shared, plan.job); }
  std::string bundle_folder(const Plan& plan) const {
    return fmt::format("{}/{}", options_.shared.empty() ? own_folder_ : meeting_folder(plan), kBundleFolder);
  }
  std::string own_path(std::string_view name) const { return fmt::format("{}/{}", own_folder_, name); }
  std::string complaint_of(int process) const;

  const CondorOptions options_;
  const std::string run_folder_;
  const std::string own_folder_;  // what HTCondor reads and writes; removed at the end

  std::vector<TaskId> tasks_;  // by the numbers of the jobs
  CondorLog log_;
  uint64_t log_bytes_ = 0;
};

Result<> CondorBackend::check(const Plan& plan) {
  const auto machines = run_tool({"condor_status", "-af", "Name", "-limit", "1"}, "", kCondorPatience);
  if (!machines && machines.error().code == Code::kNotFound) {
    return unavailable("there is no condor_status here: run this where jobs are submitted to HTCondor");
  }
  if (!machines) return machines.error();
  if (machines->code != 0) return unavailable("the pool of HTCondor does not answer: {}", machines->err);
  if (machines->out.empty()) return unavailable("the pool of HTCondor has no machine that takes jobs");
  TRY(tool_answer({"condor_q", "-totals"}, "", kCondorPatience));
  TRY(check_files(plan));
  return options_.shared.empty() ? Result<>() : check_shared(options_.shared, "condor:folder");
}

Result<std::string> CondorBackend::preview(const Plan& plan) {
  return condor_submit_file(plan, TRY(submission_of(plan, "LAUNCHER:PORT")));
}

// All by name: nothing of it must be there yet. `launcher` is where tasks connect to, if they do.
Result<CondorSubmission> CondorBackend::submission_of(const Plan& plan, const std::string& launcher) const {
  CondorSubmission submission;
  submission.folder = own_folder_;
  if (options_.shared.empty()) {
    submission.specs = own_path("spec.");
    submission.files.push_back(own_path(kTlsFolder));
    submission.agent = {"queued-task",
                        "--connect",
                        launcher,
                        "--tls-dir",
                        kTlsFolder,
                        "--lost-after-ms",
                        fmt::to_string(options_.times.lost_after.count())};
  } else {
    submission.agent = folder_arguments(meeting_folder(plan), options_.times);
  }
  TRY(add_program(plan, submission));
  // In a shared folder they are already.
  if (options_.shared.empty()) {
    for (const std::string& file : plan.files) submission.files.push_back(absolute_path(file));
  }
  submission.lease_s = static_cast<int>(std::chrono::ceil<seconds>(options_.times.lost_after).count());
  submission.requirements = options_.requirements;
  submission.accounting_group = options_.group;
  if (plan.run_timeout_ms > 0) {
    // The launcher ends the job; this is for when it cannot.
    submission.time_max_s = (plan.arrive_timeout_ms + plan.run_timeout_ms + plan.stop_grace_ms) / 1000 + 60;
  }
  return submission;
}

Result<> CondorBackend::add_program(const Plan& plan, CondorSubmission& submission) const {
  if (!options_.program.empty()) {
    submission.program = options_.program;
    return {};
  }
  if (options_.shared.empty()) {
    submission.program = own_path(kAgentScript);
    submission.transfer_program = true;
    submission.files.push_back(bundle_folder(plan));
    return {};
  }
  const std::vector<std::string> words = bundle_command(TRY(own_bundle()), bundle_folder(plan));
  submission.program = words.front();
  submission.agent.insert(submission.agent.begin(), words.begin() + 1, words.end());
  return {};
}

// To where submission_of() says that it is.
Result<> CondorBackend::bring_program(const Plan& plan) const {
  if (!options_.program.empty()) return {};
  const Bundle bundle = TRY(own_bundle());
  TRY(make_private_folder(bundle_folder(plan)));
  TRY(copy_bundle(bundle, bundle_folder(plan)));
  if (!options_.shared.empty()) return {};
  // HTCondor gives the program another name there, and the loader must keep its own: own_program() knows it by that.
  std::string script = "#!/bin/sh\nexec";
  for (const std::string& word : bundle_command(bundle, kBundleFolder)) {
    script += word.starts_with(kBundleFolder) ? fmt::format(" \"$PWD/{}\"", word) : " " + word;
  }
  const SharedFolder own = TRY(SharedFolder::open(own_folder_));
  TRY(own.write(kAgentScript, script + " \"$@\"\n"));
  ::chmod(own.path_of(kAgentScript).c_str(), S_IRWXU);
  return {};
}

// Certificates of a CA that is gone again with this call, and what each task must know. The address to come to.
Result<std::string> CondorBackend::meet_by_socket(const Plan& plan) {
  const std::string ca = own_path("ca"), ours = own_path("tls-launcher"), theirs = own_path(kTlsFolder);
  TRY(make_ca(ca, plan.job, kCertificateTime));
  TRY(issue_certificate(ca, ours, Role::kScheduler, "launcher", kCertificateTime));
  TRY(issue_certificate(ca, theirs, Role::kWorker, "agent", kCertificateTime));
  TRY(SharedFolder::remove(ca));

  const std::string host = TRY(own_address(options_.address));
  Fd listener = TRY(listen_on(TRY(resolve({"0.0.0.0", options_.port}, true)).front()));
  const Address address = TRY(parse_address(local_endpoint(listener.get()).text()));
  watch_ = TRY(SocketWatch::begin(std::move(listener), ours, tasks_));

  const SharedFolder own = TRY(SharedFolder::open(own_folder_));
  for (size_t number = 0; number < plan.tasks.size(); ++number) {
    TaskSpec spec = plan.tasks[number].spec;
    // Below the folder that HTCondor makes for the task, and removes after it.
    if (spec.private_folder.empty()) spec.private_folder = "private";
    TRY(own.write(folder_file::spec(static_cast<int>(number)), task_spec_json(spec)));
  }
  return Address{host, address.port}.text();
}

Result<> CondorBackend::start(const Plan& plan, Ledger& ledger) {
  for (const PlannedTask& task : plan.tasks) tasks_.push_back(task.spec.id);
  TRY(ledger.intend(kFolderKind, {{"path", own_folder_}}));
  TRY(make_private_folder(own_folder_));
  std::string launcher;
  if (options_.shared.empty()) {
    launcher = TRY(meet_by_socket(plan));
  } else {
    TRY(meet_in_folder(plan, options_.shared, options_.times, ledger));
  }
  TRY(bring_program(plan));
  const SharedFolder own = TRY(SharedFolder::open(own_folder_));
  TRY(own.write("submit", TRY(condor_submit_file(plan, TRY(submission_of(plan, launcher))))));

  const uint64_t entry = TRY(ledger.intend(kCondorJobKind, {{"batch_name", condor_batch_name(plan)}}));
  const std::string answer = TRY(tool_answer({"condor_submit", "-terse", own.path_of("submit")}, "", kCondorPatience));
  ask_at_ = steady_clock::now();
  return ledger.learn(entry, {{"jobs", answer.substr(0, answer.find('\n'))}});
}

Now CondorBackend::ask_queue(Now now, std::vector<TaskEvent>& events) {
  const auto own = SharedFolder::open(own_folder_);
  if (own) {
    if (const auto more = own->read_from("condor.log", log_bytes_, SharedFolder::kFileBytesMax)) {
      log_bytes_ += more->size();
      for (const CondorEvent& event : log_.read(*more)) take(event, now, events);
    }
  }
  return steady_clock::now() + kReadLogEvery;
}

void CondorBackend::take(const CondorEvent& event, Now now, std::vector<TaskEvent>& events) {
  if (event.process < 0 || static_cast<size_t>(event.process) >= tasks_.size()) return;
  const TaskId task = tasks_[static_cast<size_t>(event.process)];
  switch (event.kind) {
    case CondorEvent::Kind::kSubmitted: break;
    case CondorEvent::Kind::kRunning:
      events.push_back({.kind = TaskEvent::Kind::kPlaced, .task = task, .host = event.text});
      break;
    case CondorEvent::Kind::kEnded:
      watch_->presume_lost(task, "its agent has ended" + complaint_of(event.process), now + kLastWordsOfTask);
      break;
    case CondorEvent::Kind::kRemoved:
      watch_->presume_lost(task, "its job was removed " + event.text, now + kLastWordsOfTask);
      break;
    case CondorEvent::Kind::kHeld: watch_->presume_lost(task, "HTCondor holds it: " + event.text, now); break;
    case CondorEvent::Kind::kEvicted:
    case CondorEvent::Kind::kFailed:
      // What HTCondor says of it is about the time it has used; if it is held after that, it says why.
      watch_->presume_lost(task, "it has lost its machine", now + kLastWordsOfTask);
      break;
    case CondorEvent::Kind::kDisconnected: log_warning("{}: its machine does not answer", task.text()); break;
    case CondorEvent::Kind::kReconnected: log_info("{}: its machine answers again", task.text()); break;
  }
}

// What a broken agent wrote, for a message.
std::string CondorBackend::complaint_of(int process) const {
  constexpr uint64_t kComplaintMax = 1000;
  const auto own = SharedFolder::open(own_folder_);
  if (!own) return {};
  auto text = own->read_from(fmt::format("{}.err", process), 0, kComplaintMax);
  if (!text || text->empty()) return {};
  while (!text->empty() && text->back() == '\n') text->pop_back();
  return ": " + escape_controls(*text);
}

Result<std::vector<std::string>> CondorBackend::clean(const Plan& plan, Ledger& ledger) {
  (void)plan;
  watch_.reset();  // who still waits for us ends
  std::vector<std::string> left;
  for (const LedgerEntry& entry : ledger.remaining()) {
    if (entry.kind != kCondorJobKind) continue;
    const std::string& name = entry.what.at("batch_name");
    if (!TRY(jobs_of(name)).empty()) {
      TRY(run_tool({"condor_rm", "-constraint", constraint_of(name)}, "", kCondorPatience));
    }
    const auto deadline = steady_clock::now() + kRemovePatience;
    Backoff pause;
    while (!TRY(jobs_of(name)).empty() && steady_clock::now() < deadline) std::this_thread::sleep_for(pause.next());
    if (const auto jobs = TRY(jobs_of(name)); !jobs.empty()) {
      left.push_back(fmt::format("the jobs {} of HTCondor (`condor_rm {}`): they do not end", fmt::join(jobs, " "),
                                 fmt::join(jobs, " ")));
      continue;
    }
    TRY(ledger.gone(entry.number));
  }
  if (!left.empty()) return left;
  if (const auto own = SharedFolder::open(own_folder_)) {
    const auto log = own->read("condor.log");
    const auto run = SharedFolder::open(run_folder_);
    if (log && run) TRY(run->write("condor.log", *log));
  }
  for (const LedgerEntry& entry : ledger.remaining()) {
    if (entry.kind != kFolderKind) continue;
    if (const auto removed = remove_folder(entry, ledger); !removed) left.push_back(removed.error().message);
  }
  return left;
}

Result<std::vector<std::string>> CondorBackend::shell(const Plan& plan, TaskId task) {
  const PlannedTask* const planned = plan.find(task);
  if (planned == nullptr) return not_found("{} is none of {}", task.text(), plan.run);
  const std::string process = fmt::format(".{}", planned - plan.tasks.data());
  for (const std::string& job : TRY(jobs_of(condor_batch_name(plan)))) {
    if (job.ends_with(process)) return std::vector<std::string>{"condor_ssh_to_job", job};
  }
  return unavailable("{} is not in the queue of HTCondor any more", task.text());
}

}  // namespace

Result<std::unique_ptr<Backend>> make_condor_backend(const Cluster& cluster, const std::string& run_folder) {
  CondorOptions options{.shared = option_of(cluster, "folder"),
                        .address = option_of(cluster, "address"),
                        .program = option_of(cluster, "program"),
                        .requirements = option_of(cluster, "requirements"),
                        .group = option_of(cluster, "group")};
  options.shared = absolute_path(options.shared);
  const std::string port = option_of(cluster, "port");
  if (!port.empty() && !parse_number<uint16_t>(port, 1, 65535, options.port)) {
    return invalid("condor: '{}' is no port", port);
  }
  options.times.lost_after = TRY(seconds_option(cluster, "lost_after", options.times.lost_after));
  options.times.heartbeat = std::min(options.times.heartbeat, options.times.lost_after / 4);
  return std::make_unique<CondorBackend>(std::move(options), absolute_path(run_folder));
}

}  // namespace pscloud

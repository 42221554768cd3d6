#include "launch/host/backend_ssh.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "launch/agent/agent_hosts.h"
#include "launch/agent/machine_clean.h"
#include "launch/agent/own_address.h"
#include "launch/bundle/shipped_files.h"
#include "launch/cloud/machine_keeper.h"
#include "launch/host/ssh_connection.h"
#include "launch/process/processes.h"

namespace pscloud {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kHostKind = "agent";
constexpr const char* kGoneAt = "gone_at";   // of a machine that is taken away, Unix time
constexpr std::chrono::seconds kToOpen{60};  // and from each piece of a bundle that is taken
constexpr std::chrono::seconds kToAnswer{30};
constexpr std::chrono::seconds kToClean{30};  // beside the grace
constexpr std::chrono::seconds kToCopy{600};  // a piece of a file
constexpr size_t kControlPathMax = 70;        // sun_path has 108, ssh adds 17 while it makes the socket

// What is known of a host once its agent has said hello.
struct SshHost {
  std::string cache;    // where it keeps what is ours
  std::string address;  // at which the others reach it
  bool has_folder = false;
};

std::string question(const char* what, const auto& add) {
  JsonWriter json;
  json.begin_object().field("what", what);
  add(json);
  return json.end_object().text();
}

MachineRemains remains_of(const Plan& plan, const LedgerEntry& entry) {
  MachineRemains remains;
  remains.job = plan.job;
  remains.agent = entry.what.at("process");
  remains.folder = entry.what.at("folder");
  remains.grace_ms = plan.stop_grace_ms;
  // Of a host that the plan does not have, or not any more, any task may have been there.
  const std::string& host = entry.what.at("host");
  const bool planned = std::ranges::any_of(plan.tasks, [&](const PlannedTask& task) { return task.host == host; });
  for (const PlannedTask& task : plan.tasks) {
    if (task.host == host || !planned) remains.tasks.push_back(task.spec.id.text());
  }
  return remains;
}

// EC2 has said that it takes the machine away.
bool had_notice(const LedgerEntry& entry) { return entry.what.contains(kGoneAt); }
bool is_taken_away(const LedgerEntry& entry) {
  int64_t at = 0;
  return had_notice(entry) && parse_number(entry.what.at(kGoneAt), int64_t{0}, int64_t{1} << 40, at) &&
         unix_seconds_now() > at;
}

class SshBackend final : public Backend {
 public:
  SshBackend(const Cluster& cluster, SshOptions options)
      : options_(std::move(options)), work_folder_(option_of(cluster, "folder")) {
    for (const Host& host : cluster.hosts) hosts_.try_emplace(host.name, host);
  }

  Result<> check(const Plan& plan) override;
  Result<> start(const Plan& plan, Ledger& ledger) override;

  Result<> release(const ClusterView& view) override {
    agents_.release(view);
    return {};
  }
  Result<> stop(TaskId task, bool at_once) override {
    agents_.stop(task, at_once);
    return {};
  }
  Result<> restart(const Plan& plan, const PlannedTask& task, const Host& host, Ledger& ledger) override;
  Result<std::vector<TaskEvent>> wait(steady_clock::time_point deadline, int wake_fd) override {
    std::vector<TaskEvent> events = agents_.wait(deadline, wake_fd);
    for (const TaskEvent& event : events) {
      if (event.kind == TaskEvent::Kind::kNotice) TRY(take_notice(event));
    }
    return events;
  }

  Result<std::vector<std::string>> clean(const Plan& plan, Ledger& ledger) override;
  Result<std::vector<std::string>> shell(const Plan& plan, TaskId task) override;

 private:
  using Names = std::set<std::string>;

  static Names hosts_of(const Plan& plan);
  // Errors by host.
  Result<std::map<std::string, std::string>> open(const Names& names);
  Result<> say_hello(const Names& names);
  Result<> check_programs(const Plan& plan);
  Result<> check_routes();
  Result<> copy_files(const Plan& plan, const std::vector<PlannedTask>& tasks);
  Result<> note_host(const std::string& name, const Plan& plan, Ledger& ledger);
  Result<> take_notice(const TaskEvent& event);
  TaskSpec spec_for(const PlannedTask& task, const Plan& plan) const;
  std::string job_folder(const std::string& host, const Plan& plan) const;
  static std::map<std::string, std::string> to(const Names& names, const std::string& text);
  Names known_names() const;

  const SshOptions options_;
  const std::string work_folder_;
  std::map<std::string, Host> hosts_;
  std::map<std::string, SshHost> known_;
  std::map<std::string, std::string> processes_;  // of agents, by host
  std::map<std::string, uint64_t> entries_;       // of the ledger, by host
  Ledger* ledger_ = nullptr;                      // borrowed at start()
  std::vector<ShippedFile> files_;
  AgentHosts agents_;
};

SshBackend::Names SshBackend::hosts_of(const Plan& plan) {
  Names names;
  for (const PlannedTask& task : plan.tasks) names.insert(task.host);
  return names;
}

std::map<std::string, std::string> SshBackend::to(const Names& names, const std::string& text) {
  std::map<std::string, std::string> questions;
  for (const std::string& name : names) questions[name] = text;
  return questions;
}

SshBackend::Names SshBackend::known_names() const {
  Names names;
  for (const auto& [name, host] : known_) names.insert(name);
  return names;
}

Result<std::map<std::string, std::string>> SshBackend::open(const Names& names) {
  std::vector<Host> hosts;
  for (const std::string& name : names) {
    const auto host = hosts_.find(name);
    if (host == hosts_.end()) return invalid("the plan has a host '{}' that the cluster has not", name);
    // It could be taken for a flag of ssh.
    if (host->second.address.starts_with('-')) return invalid("'{}' is no address of a host", host->second.address);
    hosts.push_back(host->second);
  }
  std::error_code error;
  if (!options_.control_folder.empty()) {
    fs::create_directories(options_.control_folder, error);
    fs::permissions(options_.control_folder, fs::perms::owner_all, error);
  }
  return open_agents(hosts, options_, agents_, steady_clock::now() + kToOpen);
}

Result<> SshBackend::say_hello(const Names& names) {
  std::map<std::string, std::string> questions;
  std::string other;  // some host that is not this machine
  for (const auto& [name, host] : hosts_) {
    if (other.empty() && host.address != "localhost") other = host.address;
  }
  for (const std::string& name : names) {
    if (agents_.find(name) == nullptr) continue;
    const Host& host = hosts_.at(name);
    std::string interface = host.interface;
    if (interface.empty() && host.address == "localhost" && !other.empty()) interface = address_towards(other);
    questions[name] = question("hello", [&](JsonWriter& json) {
      json.field("interface", interface);
      json.field("folder", work_folder_.empty() ? fs::current_path().string() : work_folder_);
    });
  }
  for (const auto& [name, answer] : TRY(agents_.ask_all(questions, steady_clock::now() + kToAnswer))) {
    known_[name] = {answer["cache"].text(), answer["address"].text(), answer["has_folder"].truth()};
    processes_[name] = answer["process"].text();
  }
  return {};
}

Result<> SshBackend::check_programs(const Plan& plan) {
  std::map<std::string, std::set<std::string>> specs;
  for (const PlannedTask& task : plan.tasks) {
    if (!known_.contains(task.host)) continue;  // it was not reached
    TaskSpec spec = spec_for(task, plan);
    // What is copied is not there yet.
    if (!plan.files.empty() && !spec.command.empty() && spec.command.front().find('/') != std::string::npos) continue;
    spec.id = {};  // often all tasks have one command: it is asked for once
    spec.command.resize(std::min<size_t>(spec.command.size(), 1));
    spec.files.clear();
    if (!plan.files.empty()) spec.folder.clear();
    spec.private_folder.clear();
    specs[task.host].insert(task_spec_json(spec));
  }
  std::map<std::string, std::string> questions;
  for (const auto& [name, texts] : specs) {
    questions[name] = fmt::format(R"({{"what":"programs","specs":[{}]}})", fmt::join(texts, ","));
  }
  std::vector<std::string> wrong;
  for (const auto& [name, answer] : TRY(agents_.ask_all(questions, steady_clock::now() + kToAnswer))) {
    for (const JsonValue& line : answer["wrong"].items()) wrong.push_back(fmt::format("{}: {}", name, line.text()));
  }
  if (wrong.empty()) return {};
  return invalid("{}", fmt::join(wrong, "\n"));
}

Result<> SshBackend::check_routes() {
  if (known_.size() < 2) return {};
  std::map<std::string, std::string> questions;
  for (const auto& [name, host] : known_) {
    questions[name] = question("listen", [&](JsonWriter& json) { json.field("host", host.address); });
  }
  const auto listening = TRY(agents_.ask_all(questions, steady_clock::now() + kToAnswer));
  std::map<std::string, std::string> whose;
  questions.clear();
  for (const auto& [name, answer] : listening) {
    whose[answer["address"].text()] = name;
    questions[name] = question("probe", [&](JsonWriter& json) {
      json.key("addresses").begin_array();
      for (const auto& [other, theirs] : listening) {
        if (other != name) json.value(theirs["address"].text());
      }
      json.end_array();
    });
  }
  std::vector<std::string> wrong;
  for (const auto& [name, answer] : TRY(agents_.ask_all(questions, steady_clock::now() + kToAnswer))) {
    for (const JsonValue& line : answer["wrong"].items()) {
      const std::string& text = line.text();
      const auto other = std::ranges::find_if(whose, [&](const auto& each) { return text.starts_with(each.first); });
      wrong.push_back(fmt::format("{} does not reach {} at {}; choose an `interface` that it does, or open the ports",
                                  name, other == whose.end() ? "another host" : other->second, text));
    }
  }
  agents_.ask(to(known_names(), R"({"what":"quiet"})"), steady_clock::now() + kToAnswer);
  if (wrong.empty()) return {};
  return unavailable("{}", fmt::join(wrong, "\n"));
}

Result<> SshBackend::check(const Plan& plan) {
  files_ = TRY(list_shipped(plan.files));
  const auto unreached = TRY(open(hosts_of(plan)));
  // All that can be known is said at once: also what is wrong with those that were reached.
  std::vector<std::string> wrong;
  for (const auto& [name, text] : unreached) wrong.push_back(fmt::format("{}: {}", name, text));
  Code code = Code::kUnavailable;
  TRY(say_hello(hosts_of(plan)));
  for (const auto& step : {check_programs(plan), wrong.empty() ? check_routes() : Result<>()}) {
    if (step) continue;
    wrong.push_back(step.error().message);
    code = unreached.empty() ? step.error().code : Code::kUnavailable;
  }
  if (wrong.empty()) return {};
  return Error{code, fmt::format("{}", fmt::join(wrong, "\n"))};
}

std::string SshBackend::job_folder(const std::string& host, const Plan& plan) const {
  return known_.at(host).cache + "/jobs/" + plan.job;
}

TaskSpec SshBackend::spec_for(const PlannedTask& task, const Plan& plan) const {
  TaskSpec spec = task.spec;
  const SshHost& host = known_.at(task.host);
  spec.private_folder = job_folder(task.host, plan) + "/" + spec.id.text();
  spec.advertise = host.address;
  spec.spot = hosts_.at(task.host).spot;
  if (!spec.folder.empty()) return spec;
  if (!plan.files.empty()) {
    spec.folder = spec.private_folder + "/files";
  } else if (!work_folder_.empty()) {
    spec.folder = work_folder_;
  } else if (host.has_folder) {
    spec.folder = fs::current_path().string();
  }
  return spec;
}

Result<> SshBackend::copy_files(const Plan& plan, const std::vector<PlannedTask>& tasks) {
  if (files_.empty()) return {};
  Names hosts;
  for (const PlannedTask& task : tasks) hosts.insert(task.host);
  const std::string list = shipped_json(files_);
  const auto answers = TRY(agents_.ask_all(to(hosts, fmt::format(R"({{"what":"missing","files":{}}})", list)),
                                           steady_clock::now() + kToCopy));
  std::set<std::string> sent;
  for (const ShippedFile& file : files_) {
    Names missing;
    for (const auto& [name, answer] : answers) {
      for (const JsonValue& hash : answer["missing"].items()) {
        if (hash.text() == file.hash) missing.insert(name);
      }
    }
    if (missing.empty() || !sent.insert(file.hash).second) continue;
    TRY(read_pieces(file.path, [&](std::string_view piece, bool last) -> Result<> {
      const std::string put = question("put", [&](JsonWriter& json) {
        json.field("hash", file.hash).field("piece", base64(piece)).field("last", last);
      });
      std::map<std::string, std::string> questions;
      for (const std::string& name : missing) questions[name] = put;
      TRY(agents_.ask_all(questions, steady_clock::now() + kToCopy));
      return {};
    }));
  }
  std::map<std::string, std::vector<std::string>> folders;
  for (const PlannedTask& task : tasks) {
    JsonWriter json;
    folders[task.host].push_back(json.value(spec_for(task, plan).folder).text());
  }
  std::map<std::string, std::string> questions;
  for (const auto& [name, texts] : folders) {
    questions[name] = fmt::format(R"({{"what":"place","files":{},"folders":[{}]}})", list, fmt::join(texts, ","));
  }
  TRY(agents_.ask_all(questions, steady_clock::now() + kToCopy));
  return {};
}

Result<> SshBackend::note_host(const std::string& name, const Plan& plan, Ledger& ledger) {
  entries_[name] = TRY(ledger.intend(
      kHostKind,
      {{"host", name}, {"process", processes_.at(name)}, {"folder", job_folder(name, plan)}, {"job", plan.job}}));
  return {};
}

// Who cleans up, be it another process, need not look for a machine that is not there any more.
Result<> SshBackend::take_notice(const TaskEvent& event) {
  const auto entry = entries_.find(event.host);
  if (entry == entries_.end()) return {};
  agents_.let_go(event.host);
  return ledger_->learn(entry->second, {{kGoneAt, std::to_string(unix_seconds_now() + event.seconds)}});
}

Result<> SshBackend::restart(const Plan& plan, const PlannedTask& task, const Host& host, Ledger& ledger) {
  hosts_.insert_or_assign(host.name, host);
  if (agents_.find(host.name) == nullptr) {
    const auto unreached = TRY(open({host.name}));
    if (!unreached.empty()) return unavailable("{}: {}", host.name, unreached.begin()->second);
    TRY(say_hello({host.name}));
    TRY(note_host(host.name, plan, ledger));
  }
  TRY(copy_files(plan, {task}));
  agents_.start(host.name, spec_for(task, plan));
  return {};
}

Result<> SshBackend::start(const Plan& plan, Ledger& ledger) {
  ledger_ = &ledger;
  for (const auto& [name, host] : known_) TRY(note_host(name, plan, ledger));
  TRY(copy_files(plan, plan.tasks));
  for (const PlannedTask& task : plan.tasks) agents_.start(task.host, spec_for(task, plan));
  return {};
}

Result<std::vector<std::string>> SshBackend::clean(const Plan& plan, Ledger& ledger) {
  std::vector<LedgerEntry> entries;
  for (LedgerEntry& entry : ledger.remaining()) {
    if (entry.kind != kHostKind) continue;
    const bool gone = is_taken_away(entry) || (had_notice(entry) && agents_.is_lost(entry.what.at("host")));
    if (gone) TRY(ledger.gone(entry.number));
    if (!gone) entries.push_back(std::move(entry));
  }
  // Ours end their tasks and themselves; then somebody else looks whether it is so.
  agents_.end(steady_clock::now() + milliseconds(plan.stop_grace_ms) + kToClean);
  Names names;
  for (const LedgerEntry& entry : entries) names.insert(entry.what.at("host"));
  std::vector<std::string> left;
  if (names.empty()) return left;
  const auto unreached = TRY(open(names));
  std::map<std::string, std::string> questions;
  for (const LedgerEntry& entry : entries) {
    if (unreached.contains(entry.what.at("host"))) continue;
    questions[entry.what.at("host")] =
        fmt::format(R"({{"what":"clean","remains":{}}})", remains_json(remains_of(plan, entry)));
  }
  auto answers = agents_.ask(questions, steady_clock::now() + milliseconds(plan.stop_grace_ms) + kToClean);
  answers.wrong.insert(unreached.begin(), unreached.end());
  for (const LedgerEntry& entry : entries) {
    const std::string& name = entry.what.at("host");
    if (const auto why = answers.wrong.find(name); why != answers.wrong.end()) {
      if (had_notice(entry)) {  // it was a little faster than its notice
        TRY(ledger.gone(entry.number));
        continue;
      }
      left.push_back(fmt::format("perhaps processes on {}, which end by themselves within {} s: {}", name,
                                 options_.lost_after_s + plan.stop_grace_ms / 1000, why->second));
      continue;
    }
    const std::vector<JsonValue>& still = answers.given.at(name)["left"].items();
    for (const JsonValue& line : still) left.push_back(fmt::format("{}: {}", name, line.text()));
    if (still.empty()) TRY(ledger.gone(entry.number));
  }
  agents_.end(steady_clock::now() + kToClean);
  std::error_code ignored;
  if (!options_.control_folder.empty()) fs::remove_all(options_.control_folder, ignored);
  return left;
}

Result<std::vector<std::string>> SshBackend::shell(const Plan& plan, TaskId task) {
  const PlannedTask* planned = plan.find(task);
  if (planned == nullptr) return not_found("the run has no {}", task.text());
  const auto host = hosts_.find(planned->host);
  if (host == hosts_.end()) return not_found("the cluster has no host '{}'", planned->host);
  std::vector<std::string> command = ssh_command(host->second, options_, false);
  command.insert(command.begin() + 1, "-t");
  return command;
}

}  // namespace

Result<std::unique_ptr<Backend>> make_ssh_backend(const Cluster& cluster, const std::string& run_folder) {
  SshOptions options;
  options.config_file = option_of(cluster, "ssh_config");
  const std::string accept = option_of(cluster, "accept_new_host_keys");
  if (!accept.empty() && accept != "yes" && accept != "no") {
    return invalid("accept_new_host_keys is yes or no, not '{}'", accept);
  }
  options.accept_new_host_keys = accept == "yes";
  const std::string lost_after = option_of(cluster, "lost_after");
  if (!lost_after.empty() && !parse_number(lost_after, 4, 86400, options.lost_after_s)) {
    return invalid("lost_after is a number of seconds, 4 at least, not '{}'", lost_after);
  }
  TRY(idle_of(cluster));
  if (!run_folder.empty()) {  // else it is only asked whether the options are right
    const std::string control = fs::absolute(run_folder).string() + "/ssh";
    if (control.size() < kControlPathMax) options.control_folder = control;
  }
  return std::make_unique<SshBackend>(cluster, std::move(options));
}

}  // namespace pscloud

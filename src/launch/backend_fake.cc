#include "launch/backend_fake.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/text.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;

constexpr const char* kThen = "then";

// The value of "name=value", or `otherwise`.
int number_of(const std::vector<std::string>& words, std::string_view name, int otherwise) {
  for (const std::string& word : words) {
    if (word.starts_with(name) && word.size() > name.size() && word[name.size()] == '=') {
      parse_number(std::string_view(word).substr(name.size() + 1), 0, 1 << 30, otherwise);
    }
  }
  return otherwise;
}

bool has_word(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

FakeBackend::FakeBackend(Cluster cluster, std::string run_folder, std::optional<uint64_t> seed)
    : cluster_(std::move(cluster)), folder_(std::move(run_folder)) {
  if (seed) random_.emplace(*seed);
}

FakeBackend::Now FakeBackend::now() const { return random_ ? made_up_now_ : std::chrono::steady_clock::now(); }

std::string FakeBackend::file_of(const std::string& task) const { return folder_ + "/fake/" + task; }

void FakeBackend::die_at(std::string_view step) const {
  if (option_of(cluster_, "die") == step) ::raise(SIGKILL);
}

Result<> FakeBackend::check(const Plan&) {
  die_at("check");
  if (const std::string fault = option_of(cluster_, "check"); !fault.empty()) return unavailable("{}", fault);
  return {};
}

void FakeBackend::later(int after_ms, TaskEvent event) {
  coming_.emplace(now() + milliseconds(after_ms), std::move(event));
}

Result<> FakeBackend::start(const Plan& plan, Ledger& ledger) {
  ledger_ = &ledger;
  std::error_code ignored;
  std::filesystem::create_directory(folder_ + "/fake", ignored);
  for (const PlannedTask& planned : plan.tasks) {
    const auto& words = planned.spec.command;
    TRY(start_one(planned, {words.begin(), std::ranges::find(words, kThen)}, ledger));
  }
  return {};
}

Result<> FakeBackend::restart(const Plan&, const PlannedTask& task, const Host&, Ledger& ledger) {
  die_at("restart");
  const auto& words = task.spec.command;
  auto then = std::ranges::find(words, kThen);
  if (then != words.end()) ++then;
  return start_one(task, {then, words.end()}, ledger);
}

Result<> FakeBackend::start_one(const PlannedTask& planned, std::vector<std::string> words, Ledger& ledger) {
  const TaskId id = planned.spec.id;
  tasks_[id] = {};
  FakeTask& task = tasks_[id];
  task.words = std::move(words);
  task.grace_ms = planned.spec.stop_grace_ms;
  task.entry = TRY(ledger.intend("fake", {{"task", id.text()}}));
  const std::ofstream file(file_of(id.text()));
  if (!file) return unavailable("cannot make {}", file_of(id.text()));
  die_at("start");
  made_up_now_ += std::chrono::milliseconds(number_of(task.words, "copy", 0));
  later(0, {.kind = TaskEvent::Kind::kPlaced, .task = id, .host = planned.host.empty() ? "nowhere" : planned.host});
  const int late_ms = number_of(task.words, "late", 0);
  if (has_word(task.words, "never")) return {};
  if (has_word(task.words, "absent")) {
    task.ended = true;
    later(late_ms, {.kind = TaskEvent::Kind::kLost, .task = id, .text = "its machine is gone"});
    return {};
  }
  later(late_ms, {.kind = TaskEvent::Kind::kArrived,
                  .task = id,
                  .address = {"127.0.0.1", static_cast<uint16_t>(20000 + tasks_.size() % 10000)}});
  return {};
}

Result<> FakeBackend::release(const ClusterView& view) {
  die_at("release");
  for (const TaskAddress& address : view.tasks) {
    FakeTask& task = tasks_[address.id];
    if (!task.begun && !task.ended) begin(address.id, task);
  }
  return {};
}

void FakeBackend::begin(TaskId id, FakeTask& task) {
  task.begun = true;
  later(0, {.kind = TaskEvent::Kind::kRunning, .task = id});
  int at_ms = 0;
  for (const std::string& word : task.words) {
    const std::string_view name = std::string_view(word).substr(0, word.find('='));
    const std::string value = name.size() < word.size() ? word.substr(name.size() + 1) : "";
    if (name == "print" || name == "error") {
      later(at_ms, {.kind = TaskEvent::Kind::kLine, .task = id, .text = value, .is_stderr = name == "error"});
    } else if (name == "cpu") {
      const double percent = number_of({word}, "cpu", 0);
      later(at_ms, {.kind = TaskEvent::Kind::kSample, .task = id, .figures = {{"cpu_percent", percent}}});
    } else if (name == "notice") {
      const int left_s = number_of({word}, "notice", 0);
      later(at_ms, {.kind = TaskEvent::Kind::kNotice, .task = id, .text = "terminate", .seconds = left_s});
    } else if (name == "wait") {
      at_ms += number_of({word}, "wait", 0);
    } else if (name == "hang") {
      return;
    } else if (name == "lose") {
      task.ended = true;
      later(at_ms, {.kind = TaskEvent::Kind::kLost, .task = id, .text = "its machine is gone"});
      return;
    } else if (name == "exit" || name == "signal") {
      task.ended = true;
      later(at_ms, {.kind = TaskEvent::Kind::kExited,
                    .task = id,
                    .code = number_of({word}, "exit", 0),
                    .signal = number_of({word}, "signal", 0)});
      return;
    }
  }
  task.ended = true;
  later(at_ms, {.kind = TaskEvent::Kind::kExited, .task = id});
}

void FakeBackend::end_by(TaskId id, FakeTask& task, int after_ms, int signal) {
  std::erase_if(coming_, [&](const auto& coming) { return coming.second.task == id; });
  task.ended = true;
  later(after_ms, {.kind = TaskEvent::Kind::kExited, .task = id, .signal = signal});
}

Result<> FakeBackend::stop(TaskId id, bool at_once) {
  die_at("stop");
  FakeTask& task = tasks_[id];
  if (task.over || has_word(task.words, "undead")) return {};
  if (at_once) {
    end_by(id, task, 0, SIGKILL);
  } else if (has_word(task.words, "deaf")) {
    end_by(id, task, task.grace_ms, SIGKILL);
  } else {
    end_by(id, task, number_of(task.words, "slow", 0), SIGTERM);
  }
  return {};
}

Result<std::vector<TaskEvent>> FakeBackend::wait(Now deadline, int wake_fd) {
  const Now until = coming_.empty() ? deadline : std::min(deadline, coming_.begin()->first);
  if (random_) {
    made_up_now_ = std::max(made_up_now_, until);
  } else if (until > now()) {
    const auto left = std::chrono::ceil<milliseconds>(until - now());
    pollfd wake{.fd = wake_fd, .events = POLLIN, .revents = 0};
    ::poll(&wake, wake_fd < 0 ? 0 : 1, static_cast<int>(std::min<int64_t>(left.count(), 60000)));
  }
  std::vector<TaskEvent> events;
  TRY(give_out(events));
  return events;
}

Result<> FakeBackend::give_out(std::vector<TaskEvent>& events) {
  while (!coming_.empty() && coming_.begin()->first <= now()) {
    // Of those of one moment any, but the first of its task.
    auto next = coming_.begin();
    if (random_) {
      const auto end = coming_.upper_bound(next->first);
      std::vector<decltype(next)> firsts;
      for (auto each = next; each != end; ++each) {
        const auto same = [&](const auto& other) { return other->second.task == each->second.task; };
        if (std::ranges::none_of(firsts, same)) firsts.push_back(each);
      }
      next = firsts[random_->below(firsts.size())];
    }
    TaskEvent event = std::move(next->second);
    coming_.erase(next);
    if (event.kind == TaskEvent::Kind::kExited || event.kind == TaskEvent::Kind::kLost) {
      FakeTask& task = tasks_[event.task];
      task.over = true;
      ::unlink(file_of(event.task.text()).c_str());
      TRY(ledger_->gone(task.entry));
    }
    events.push_back(std::move(event));
  }
  return {};
}

Result<std::vector<std::string>> FakeBackend::clean(const Plan&, Ledger& ledger) {
  die_at("clean");
  for (const LedgerEntry& entry : ledger.remaining()) {
    const auto task = entry.what.find("task");
    if (task != entry.what.end()) ::unlink(file_of(task->second).c_str());
    TRY(ledger.gone(entry.number));
  }
  return std::vector<std::string>();
}

Result<std::vector<std::string>> FakeBackend::shell(const Plan&, TaskId task) {
  return std::vector<std::string>{"echo", fmt::format("{} is made up", task.text())};
}

Result<std::unique_ptr<Backend>> make_fake_backend(const Cluster& cluster, const std::string& run_folder) {
  return std::make_unique<FakeBackend>(cluster, run_folder, std::nullopt);
}

}  // namespace pscloud

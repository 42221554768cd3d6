#include "launch/agent/agent.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>  // NOLINT: <csignal> does not promise sigset_t
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <list>

#include "base/check.h"
#include "launch/agent/keep_alive.h"
#include "launch/agent/process_sampler.h"
#include "launch/agent/spot_watch.h"
#include "launch/agent/task_runner.h"
#include "launch/process/processes.h"

namespace pscloud {
namespace {

using AgentTime = AgentLink::Time;
using std::chrono::milliseconds;

constexpr milliseconds kLastWords{10000};
constexpr int kOrphansTimeoutMs = 5000;
constexpr milliseconds kLongestWait{60000};
// After the programs' start; then as often as the link says. A job that is over before has no samples, and no cost.
constexpr milliseconds kFirstSample{500};

// A task's own variables are said by the user; those of the agent by who logs in.
AwsVariables aws_variables_of(const TaskSpec& spec) {
  return [own = process_aws_variables(), variables = spec.environment](const char* name) {
    for (const auto& [each, value] : variables) {
      if (each == name) return value;
    }
    return own(name);
  };
}

AgentTime time_now() { return std::chrono::steady_clock::now(); }

// The signals that an agent hears, as a descriptor. Blocked for as long as this lives.
class SignalQueue {
 public:
  SignalQueue() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
    CHECK(::sigprocmask(SIG_BLOCK, &set, &before_) == 0);
    fd_ = Fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
    CHECK(fd_);
  }
  ~SignalQueue() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  int fd() const { return fd_.get(); }
  struct News {
    int end = 0;  // the first that means the end, 0 if there is none
    // The first of the children that have ended, 0 if there is none: of a SIGCHLD that nobody has read yet the kernel
    // keeps the first. By waitpid() they come in the order in which they began.
    pid_t first_child = 0;
  };
  News take() {
    News news;
    signalfd_siginfo info{};
    while (::read(fd_.get(), &info, sizeof info) == sizeof info) {
      if (info.ssi_signo != SIGCHLD) {
        if (news.end == 0) news.end = static_cast<int>(info.ssi_signo);
      } else if (news.first_child == 0) {
        news.first_child = static_cast<pid_t>(info.ssi_pid);
      }
    }
    return news;
  }

 private:
  Fd fd_;
  sigset_t before_;
};

class Agent {
 public:
  explicit Agent(AgentLink& link) : link_(link) {}

  int run(std::vector<TaskSpec> tasks) {
    until_tasks_end_ = !tasks.empty();
    for (TaskSpec& spec : tasks) start(std::move(spec), time_now());
    while (!is_done()) {
      wait();
      const AgentTime now = time_now();
      const SignalQueue::News news = signals_.take();
      if (news.end != 0) {
        end(fmt::format("got signal {} (SIG{})", news.end, ::sigabbrev_np(news.end)), now);
      }
      reap(news.first_child, now);
      while (auto word = link_.next(now)) obey(*word, now);
      if (!ending_) keep_alive_.beat(now);
      if (spot_) tell_notice();
      const bool read_lines = !link_.is_full();
      for (TaskRunner& runner : runners_) runner.work(read_lines, now);
      if (now >= sample_at_) sample(now);
      tell();
    }
    link_.flush(time_now() + kLastWords);
    end_orphans();
    return exit_code_;
  }

 private:
  bool is_done() const {
    const bool all_ended = std::ranges::all_of(runners_, &TaskRunner::has_ended);
    return all_ended && (ending_ || until_tasks_end_);
  }

  void start(TaskSpec spec, AgentTime now) {
    const auto same = [&](const TaskRunner& runner) { return runner.spec().id == spec.id; };
    if (ending_ || std::ranges::any_of(runners_, [&](const auto& r) { return same(r) && !r.has_ended(); })) return;
    runners_.remove_if(same);
    // After the signals were blocked, which are not for its thread.
    if (spec.spot && !spot_) spot_.emplace(aws_variables_of(spec));
    runners_.emplace_back(std::move(spec), random_, now);
    tell();
  }

  void obey(LauncherWord& word, AgentTime now) {
    switch (word.kind) {
      case LauncherWord::Kind::kStart: start(std::move(word.spec), now); break;
      case LauncherWord::Kind::kView:
        for (TaskRunner& runner : runners_) runner.release(word.view, now);
        if (sample_at_ == AgentTime::max() && link_.looks().samples.count() > 0) sample_at_ = now + kFirstSample;
        break;
      case LauncherWord::Kind::kStop:
        for (TaskRunner& runner : runners_) {
          if (runner.spec().id == word.task) runner.stop(word.at_once, now);
        }
        break;
      case LauncherWord::Kind::kGone: end(word.why, now); break;
    }
  }

  // A launcher that hears of these ends after all would take them for the programs' own: each task's last lines say
  // `why`. Empty: somebody else does.
  void end(const std::string& why, AgentTime now) {
    for (TaskRunner& runner : runners_) {
      if (!ending_ && !why.empty() && !runner.has_ended()) {
        link_.say({.kind = TaskEvent::Kind::kLine,
                   .task = runner.spec().id,
                   .text = fmt::format("pscloud: the agent ends this task: {}", why),
                   .is_stderr = true});
      }
      runner.stop(false, now);
    }
    ending_ = true;
  }

  void reap(pid_t first, AgentTime now) {
    int status = 0;
    const auto tell_runners = [&](pid_t pid) {
      std::ranges::any_of(runners_, [&](TaskRunner& runner) { return runner.on_child_end(pid, status, now); });
    };
    if (first > 0 && ::waitpid(first, &status, WNOHANG) == first) tell_runners(first);
    for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) tell_runners(pid);
  }

  // One look for all tasks. If nobody takes what is sent there is nothing to measure; and however many processes the
  // machine has, no more than a hundredth of the time goes into it.
  void sample(AgentTime now) {
    std::vector<SampledTask> tasks;
    std::vector<TaskRunner*> sampled;
    for (TaskRunner& runner : runners_) {
      if (auto task = runner.sampled()) {
        tasks.push_back(*std::move(task));
        sampled.push_back(&runner);
      }
    }
    if (!tasks.empty() && !link_.is_full()) {
      std::vector<Figures> figures = sampler_.look(tasks, now);
      for (size_t i = 0; i < sampled.size(); ++i) sampled[i]->take_sample(std::move(figures[i]));
      if (now >= ask_nodes_at_) {
        for (TaskRunner* runner : sampled) runner->ask_nodes(now);
        // Not later because this look was some milliseconds late.
        ask_nodes_at_ = now + link_.looks().states - link_.looks().samples / 2;
      }
    }
    const AgentTime::duration took = time_now() - now;
    sample_at_ = now + std::max<AgentTime::duration>(link_.looks().samples, 100 * took);
  }

  void tell_notice() {
    const auto notice = spot_->take();
    if (!notice) return;
    const int left_s = notice->seconds_left(std::chrono::system_clock::now());
    for (TaskRunner& runner : runners_) {
      if (runner.spec().spot) runner.take_notice(*notice, left_s);
    }
  }

  void tell() {
    for (TaskRunner& runner : runners_) {
      for (const TaskEvent& event : runner.take_events()) link_.say(event);
      if (runner.has_ended()) exit_code_ = std::max(exit_code_, runner.exit_code());
    }
  }

  void wait() const {
    std::vector<pollfd> polled{{signals_.fd(), POLLIN, 0}};
    link_.add_to(polled);
    if (spot_) polled.push_back({spot_->fd(), POLLIN, 0});
    const AgentTime now = time_now();
    AgentTime until = std::min({now + kLongestWait, link_.ask_again(now), sample_at_});
    const bool read_lines = !link_.is_full();
    for (const TaskRunner& runner : runners_) {
      runner.add_to(polled, read_lines);
      if (!runner.has_ended()) until = std::min(until, runner.next_deadline());
    }
    const auto left = std::chrono::ceil<milliseconds>(until - now).count();
    ::poll(polled.data(), polled.size(), static_cast<int>(std::max<int64_t>(left, 0)));
  }

  // Those that hid even their environment from their task.
  static void end_orphans() {
    kill_all(
        [] {
          std::vector<ProcessIdentity> left;
          for (const pid_t pid : own_descendants()) {
            if (auto process = identify_process(pid)) left.push_back(*std::move(process));
            ::waitpid(pid, nullptr, WNOHANG);
          }
          return left;
        },
        kOrphansTimeoutMs);
  }

  AgentLink& link_;
  KeepAlive keep_alive_;
  Random random_ = Random::from_system();
  SignalQueue signals_;
  std::list<TaskRunner> runners_;
  std::optional<SpotWatch> spot_;  // from the first task that wants one
  ProcessSampler sampler_;
  AgentTime sample_at_ = AgentTime::max();  // until the first programs begin
  AgentTime ask_nodes_at_{};
  bool ending_ = false;
  bool until_tasks_end_ = false;
  int exit_code_ = 0;
};

}  // namespace

int run_agent(AgentLink& link, std::vector<TaskSpec> tasks) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  return Agent(link).run(std::move(tasks));
}

}  // namespace pscloud

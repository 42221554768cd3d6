#include "launch/cloud/machine_wait.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "base/text.h"
#include "launch/cloud/patience.h"
#include "launch/cloud/user_data.h"
#include "launch/host/ssh_connection.h"
#include "launch/process/tool.h"

namespace pscloud {
namespace {

constexpr std::chrono::seconds kToAsk{20};
constexpr int kWordsInIdle = 4;  // so many times in the time without a word after which a machine ends itself
constexpr size_t kAtOnce = 32;
constexpr size_t kShown = 3;  // machines whose logs are shown: the others will look alike

struct MachineWord {
  bool reached = false;
  std::string text;  // what the command wrote, or why it could not be asked
};

MachineWord ask_machine(const Host& machine, const SshOptions& options, const std::string& command,
                        const std::string& input = {}, const std::stop_token& stop = {}) {
  std::vector<std::string> words = ssh_command(machine, options, false);
  words.push_back(command);
  const auto output = run_tool(words, input, kToAsk, stop);
  if (!output) return {false, output.error().message};
  if (output->code == 255) {
    const size_t end = output->err.find_last_not_of("\r\n ");
    const size_t begin = output->err.find_last_of("\r\n", end);
    const std::string last = end == std::string::npos ? "no answer" : output->err.substr(begin + 1, end - begin);
    return {false, explain_ssh(machine, output->err, escape_controls(last))};
  }
  return {true, output->out};
}

// The answers of all, in their order; empty ones of those that were not asked any more.
std::vector<MachineWord> ask_machines(const std::vector<Host>& machines, const SshOptions& options,
                                      const std::string& command, const std::string& input = {},
                                      const std::stop_token& stop = {}) {
  std::vector<MachineWord> words(machines.size());
  std::atomic<size_t> next = 0;
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < std::min(machines.size(), kAtOnce); ++i) {
    threads.emplace_back([&] {
      for (size_t at = next++; at < machines.size() && !stop.stop_requested(); at = next++) {
        words[at] = ask_machine(machines[at], options, command, input, stop);
      }
    });
  }
  threads.clear();
  return words;
}

SshOptions ssh_options(const std::string& config, bool accept_new) {
  SshOptions options;
  options.config_file = config;
  options.accept_new_host_keys = accept_new;
  return options;
}

}  // namespace

Result<> wait_for_machines(const std::vector<Host>& machines, const MachineWaitOptions& options) {
  const SshOptions ssh = ssh_options(options.ssh_config, true);
  // Before its set-up has come so far a machine has no such file, and needs no word.
  const std::string command = fmt::format("touch {} 2>/dev/null; cat {}", kMachineKeepAlive, kMachineState);
  std::vector<Host> waiting = machines;
  std::vector<Host> ready;
  auto next_word = Patience::Clock::now() + options.idle / kWordsInIdle;
  std::map<std::string, std::string> told;
  std::set<std::string> reached;
  Patience patience(options.deadline, options.cancelled);
  while (true) {
    std::vector<Host> asked = waiting;
    if (options.idle.count() > 0 && Patience::Clock::now() >= next_word) {
      asked.insert(asked.end(), ready.begin(), ready.end());
      next_word = Patience::Clock::now() + options.idle / kWordsInIdle;
    }
    const std::vector<MachineWord> words = ask_machines(asked, ssh, command);
    std::vector<Host> still;
    for (size_t i = 0; i < waiting.size(); ++i) {
      const Host& machine = waiting[i];
      if (words[i].reached) reached.insert(machine.name);
      const std::string first = words[i].text.substr(0, words[i].text.find('\n'));
      std::string state = words[i].reached ? "is being set up" : fmt::format("waits for ssh ({})", words[i].text);
      if (words[i].reached && first == "ready") state = "is ready";
      if (words[i].reached && first.starts_with("failed")) {
        return job_failed("{} ({}) could not be set up: {}{}", machine.name, machine.address, escape_controls(first),
                          machine_log_tail(machine, options.ssh_config));
      }
      if (told[machine.name] != state) options.say(fmt::format("{} {}", machine.name, state));
      told[machine.name] = state;
      (state == "is ready" ? ready : still).push_back(machine);
    }
    waiting = std::move(still);
    if (waiting.empty()) return {};
    if (patience.is_over()) break;
    TRY(patience.pause());
  }
  std::vector<std::string> missing;
  for (const Host& machine : waiting) {
    missing.push_back(fmt::format("{} ({}) {}", machine.name, machine.address, told[machine.name]));
  }
  std::string logs;
  for (size_t i = 0; i < std::min(waiting.size(), kShown); ++i) {
    const Host& machine = waiting[i];
    logs += reached.contains(machine.name) ? machine_log_tail(machine, options.ssh_config) : options.console(machine);
  }
  return timed_out("not all machines got ready in time: {}{}", fmt::join(missing, "; "), logs);
}

std::string machine_log_tail(const Host& machine, const std::string& ssh_config) {
  const MachineWord log =
      ask_machine(machine, ssh_options(ssh_config, true), fmt::format("tail -n 25 {}", kMachineLog));
  return fmt::format("\n  the end of {} of {}:\n{}", kMachineLog, machine.name, log.text);
}

std::vector<std::string> tell_machines(const std::vector<Host>& machines, const std::string& ssh_config,
                                       const std::string& command, const std::string& input,
                                       const std::stop_token& stop) {
  const auto words = ask_machines(machines, ssh_options(ssh_config, false), command + " && echo told", input, stop);
  std::vector<std::string> wrong;
  for (size_t i = 0; i < machines.size(); ++i) {
    if (!words[i].text.starts_with("told")) wrong.push_back(fmt::format("{}: {}", machines[i].name, words[i].text));
  }
  return wrong;
}

std::vector<std::string> keep_machines(const std::vector<Host>& machines, const std::string& ssh_config,
                                       const std::stop_token& stop) {
  return tell_machines(machines, ssh_config, fmt::format("touch {}", kMachineKeepAlive), "", stop);
}

}  // namespace pscloud

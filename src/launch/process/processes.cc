#include "launch/process/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>  // NOLINT: kill() is POSIX
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <map>
#include <memory>
#include <sstream>
#include <thread>

#include "base/fd.h"
#include "base/text.h"
#include "launch/process/read_to_end.h"

namespace pscloud {
namespace {

constexpr size_t kProcFileBytesMax = 64 << 20;  // an environment may be large

// Empty if the process is gone, even if it went just now.
std::string read_whole(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file ? read_to_end(file.get(), kProcFileBytesMax).value_or("") : "";
}

struct ProcessStat {
  char state = '?';
  pid_t parent = 0;
  uint64_t flags = 0;
  uint64_t started = 0;  // clock ticks since the machine's boot
};

std::optional<ProcessStat> read_stat(pid_t pid) {
  const std::string text = read_whole(fmt::format("/proc/{}/stat", pid));
  const size_t name_end = text.rfind(')');  // a program's name may have any character
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  ProcessStat stat;
  std::string skipped;
  fields >> stat.state >> stat.parent;
  for (int field = 5; field < 9; ++field) fields >> skipped;  // proc(5): the flags are the 9th
  fields >> stat.flags;
  for (int field = 10; field < 22; ++field) fields >> skipped;  // and starttime is the 22nd
  fields >> stat.started;
  if (!fields) return std::nullopt;
  return stat;
}

// The same file once more, without a stream: it is read for every process of the machine, every two seconds.
std::optional<ProcessUse> read_use(pid_t pid) {
  const Fd file(::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> bytes;
  const ssize_t size = file ? ::read(file.get(), bytes.data(), bytes.size()) : -1;
  if (size <= 0) return std::nullopt;
  const std::string_view text(bytes.data(), static_cast<size_t>(size));
  const size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  // proc(5): the third field is the state, a letter; behind it all are numbers.
  constexpr size_t kFirst = 4, kParent = 4, kSession = 6, kUserTicks = 14, kChildrensSystemTicks = 17, kResident = 24;
  std::array<int64_t, kResident + 1> fields{};
  const char* at = text.data() + std::min(name_end + 3, text.size());
  const char* const end = text.data() + text.size();
  for (size_t i = kFirst; i <= kResident; ++i) {
    while (at < end && *at == ' ') ++at;
    const auto [next, error] = std::from_chars(at, end, fields[i]);
    if (error != std::errc{}) return std::nullopt;
    at = next;
  }
  ProcessUse use;
  use.pid = pid;
  use.parent = static_cast<pid_t>(fields[kParent]);
  use.session = static_cast<pid_t>(fields[kSession]);
  for (size_t i = kUserTicks; i <= kChildrensSystemTicks; ++i) use.ticks += static_cast<uint64_t>(fields[i]);
  use.resident_pages = static_cast<uint64_t>(std::max<int64_t>(0, fields[kResident]));
  return use;
}

bool is_there(const ProcessStat& stat) { return stat.state != 'Z' && stat.state != 'X'; }

// In the middle of exec() a process has for a moment neither words nor environment, as threads of the kernel always do.
bool is_between_programs(pid_t pid) {
  constexpr uint64_t kKernelThread = 0x00200000;  // PF_KTHREAD of the kernel's sched.h
  const auto stat = read_stat(pid);
  return stat && is_there(*stat) && (stat->flags & kKernelThread) == 0 &&
         read_whole(fmt::format("/proc/{}/cmdline", pid)).empty();
}

// As it was when the process was started.
std::string environment_of(pid_t pid) {
  constexpr int kLooksMax = 1000;  // a machine that is busy or short of memory may need long to begin a program
  constexpr int kWithoutMax = 3;   // it may be between programs at the moment of one look, and not of the other
  const std::string path = fmt::format("/proc/{}/environ", pid);
  int without = 0;
  for (int look = 0; look < kLooksMax && without < kWithoutMax; ++look) {
    std::string environment = read_whole(path);
    if (!environment.empty()) return environment;
    if (is_between_programs(pid)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } else {
      ++without;
    }
  }
  return {};
}

std::string boot_id() {
  std::string id = read_whole("/proc/sys/kernel/random/boot_id");
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  while (folder != nullptr) {
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr) break;
    pid_t pid = 0;
    if (parse_number<pid_t>(entry->d_name, 1, std::numeric_limits<pid_t>::max(), pid)) found.push_back(pid);
  }
  return found;
}

bool is_program(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string ProcessIdentity::text() const { return fmt::format("{} {}", pid, started); }

std::optional<ProcessIdentity> parse_process_identity(std::string_view text) {
  const size_t space = text.find(' ');
  ProcessIdentity process;
  if (space == std::string_view::npos || space + 1 == text.size() ||
      !parse_number<pid_t>(text.substr(0, space), 1, std::numeric_limits<pid_t>::max(), process.pid)) {
    return std::nullopt;
  }
  process.started = text.substr(space + 1);
  return process;
}

std::optional<ProcessIdentity> identify_process(pid_t pid) {
  const auto stat = read_stat(pid);
  if (!stat || !is_there(*stat)) return std::nullopt;
  return ProcessIdentity{pid, fmt::format("{}-{}", boot_id(), stat->started)};
}

bool is_alive(const ProcessIdentity& process) {
  const auto now = identify_process(process.pid);
  return now && now->started == process.started;
}

std::vector<ProcessUse> all_process_uses() {
  std::vector<ProcessUse> uses;
  for (const pid_t pid : all_processes()) {
    if (const auto use = read_use(pid)) uses.push_back(*use);
  }
  return uses;
}

bool has_entry(pid_t pid, std::string_view entry, bool prefix) {
  const std::string environment = environment_of(pid);
  for (size_t at = 0; at < environment.size();) {
    const size_t end = std::min(environment.find('\0', at), environment.size());
    const std::string_view each = std::string_view(environment).substr(at, end - at);
    if (prefix ? each.starts_with(entry) : each == entry) return true;
    at = end + 1;
  }
  return false;
}

std::vector<ProcessIdentity> processes_with_entry(std::string_view entry, bool prefix) {
  std::vector<ProcessIdentity> found;
  for (const pid_t pid : all_processes()) {
    if (pid == ::getpid() || !has_entry(pid, entry, prefix)) continue;
    if (auto process = identify_process(pid)) found.push_back(*std::move(process));
  }
  return found;
}

std::vector<pid_t> own_descendants() {
  std::map<pid_t, pid_t> parents;
  for (const pid_t pid : all_processes()) {
    if (const auto stat = read_stat(pid)) parents[pid] = stat->parent;
  }
  std::vector<pid_t> found;
  for (const auto& [pid, parent] : parents) {
    pid_t above = parent;
    // Numbers are given again: what was read at different times could be a circle.
    for (size_t i = 0; i < parents.size() && above > 1 && above != ::getpid(); ++i) {
      const auto at = parents.find(above);
      above = at == parents.end() ? 0 : at->second;
    }
    if (above == ::getpid()) found.push_back(pid);
  }
  return found;
}

bool kill_all(const std::function<std::vector<ProcessIdentity>()>& find, int timeout_ms) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (true) {
    const std::vector<ProcessIdentity> left = find();
    if (left.empty()) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    for (const ProcessIdentity& process : left) ::kill(process.pid, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::optional<std::string> find_program(const std::string& word, std::string_view path) {
  if (word.empty()) return std::nullopt;
  if (word.find('/') != std::string::npos) return word;
  while (!path.empty()) {
    const size_t end = std::min(path.find(':'), path.size());
    const std::string folder(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
    std::string candidate = fmt::format("{}/{}", folder.empty() ? "." : folder, word);
    if (is_program(candidate)) return candidate;
  }
  return std::nullopt;
}

}  // namespace pscloud

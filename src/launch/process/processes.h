#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pscloud/error.h"

namespace pscloud {

// A process and nothing else: a process id alone is given again to another after a while.
struct ProcessIdentity {
  pid_t pid = 0;
  std::string started;  // boot of the machine, and clock ticks since then

  std::string text() const;  // "77 3b0d...-123456"
};
std::optional<ProcessIdentity> parse_process_identity(std::string_view text);

// None if there is no such process (one that has ended and was not waited for is none).
std::optional<ProcessIdentity> identify_process(pid_t pid);
bool is_alive(const ProcessIdentity& process);

// Of all processes that we may look at: those whose environment, as it was when they were started, has this entry
// ("NAME=value"), or one that begins with it if `prefix`. This process is left out.
std::vector<ProcessIdentity> processes_with_entry(std::string_view entry, bool prefix);
// Of this process: its children, those that it got because their own parents died too, and theirs. Not only children:
// while one is looked at after the other, a parent may die whose child was looked at before and had not come to us yet.
std::vector<pid_t> own_descendants();
bool has_entry(pid_t pid, std::string_view entry, bool prefix);

// What a process has used so far.
struct ProcessUse {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
  uint64_t ticks = 0;  // of the CPU (_SC_CLK_TCK a second), with those of children that it has waited for
  uint64_t resident_pages = 0;
};
// Of all processes of this machine, those that have ended and were not waited for too.
std::vector<ProcessUse> all_process_uses();

// SIGKILL to all that `find` names, again and again until it names none: what they start meanwhile too. False if some
// are left after `timeout_ms`.
bool kill_all(const std::function<std::vector<ProcessIdentity>()>& find, int timeout_ms);

// Where a program is that is called by `word`: as it is if it has a slash, else the first of PATH. None: nowhere.
std::optional<std::string> find_program(const std::string& word, std::string_view path);

}  // namespace pscloud

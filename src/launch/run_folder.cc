#include "launch/run_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "base/random.h"
#include "base/suggest.h"
#include "base/text.h"
#include "launch/plan.h"
#include "launch/process/read_to_end.h"
#include "launch/process/spawn.h"
#include "launch/process/write_all.h"

namespace pscloud {
namespace {

constexpr size_t kFileBytesMax = 64 << 20;
constexpr int kNameTries = 1000;

// The whole file, of an open file description: a child that is forked holds it too, and one can ask who has it without
// taking it.
struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

bool take_lock(int fd) {
  struct flock lock = whole_file(F_WRLCK);
  return ::fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

bool is_locked(int fd) {
  struct flock lock = whole_file(F_WRLCK);
  return ::fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

Result<> write_file(const std::string& path, std::string_view text) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) return unavailable("{}: cannot make it: {}", path, errno_text(errno));
  return write_all(file.get(), text).at(path);
}

Result<> make_folders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return unavailable("{}: cannot make this folder: {}", path, error.message());
  return {};
}

using Folder = std::unique_ptr<DIR, decltype([](DIR* folder) { ::closedir(folder); })>;

// Calls `take` with each name in a folder.
template <class Take>
void each_name(const std::string& path, const Take& take) {
  const Folder folder(::opendir(path.c_str()));
  if (!folder) return;
  while (const dirent* entry = ::readdir(folder.get())) take(std::string_view(entry->d_name), ::dirfd(folder.get()));
}

// The number behind the last run of that name, "train-7"; 1 if there is only "train".
int last_number(const std::string& runs, const std::string& name) {
  int last = 1;
  each_name(runs, [&](std::string_view each, int) {
    int number = 0;
    if (each.starts_with(name) && each.size() > name.size() + 1 && each[name.size()] == '-' &&
        parse_number(each.substr(name.size() + 1), 2, 1000000000, number)) {
      last = std::max(last, number);
    }
  });
  return last;
}

// "name-2"; a long name is cut, so that it stays one of a run.
std::string numbered_name(const std::string& name, int number) {
  const std::string suffix = fmt::format("-{}", number);
  std::string stem = name.substr(0, kRunNameMax - suffix.size());
  while (stem.ends_with('-')) stem.pop_back();
  return stem + suffix;
}

// In one piece, of one length, so that it can be read at any time.
Result<> write_process_id(int fd) {
  const std::string text = fmt::format("{:<10}\n", ::getpid());
  if (::pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size())) return {};
  return unavailable("cannot write its lock: {}", errno_text(errno));
}

// A folder with a lock that we hold, under a name that nobody lists.
Result<std::pair<std::string, Fd>> make_unborn(const std::string& runs) {
  std::string path = fmt::format("{}/.new-{:016x}", runs, Random::from_system().next());
  if (::mkdir(path.c_str(), 0700) != 0) return unavailable("{}: cannot make it: {}", path, errno_text(errno));
  Fd lock(::open((path + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock || !take_lock(lock.get())) return unavailable("{}: cannot lock it: {}", path, errno_text(errno));
  TRY(write_process_id(lock.get()).at(path));
  return std::pair(std::move(path), std::move(lock));
}

void remove_folder(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace

Result<std::string> find_runs_folder() {
  if (const std::string home = own_variable("PSCLOUD_HOME"); !home.empty()) {
    return std::filesystem::absolute(home).string() + "/runs";
  }
  if (const std::string state = own_variable("XDG_STATE_HOME"); !state.empty()) return state + "/pscloud/runs";
  if (const std::string home = own_variable("HOME"); !home.empty()) return home + "/.local/state/pscloud/runs";
  return invalid("neither PSCLOUD_HOME nor HOME is set: there is no place for the folders of runs");
}

Result<RunFolder> RunFolder::create(const std::string& runs, const std::string& name, bool exact,
                                    const FirstFiles& files) {
  TRY(make_folders(runs));
  auto [unborn, lock] = TRY(make_unborn(runs));
  const auto give_up = [&, path = unborn](Error error) {
    remove_folder(path);
    return error;
  };
  if (::mkdir((unborn + "/logs").c_str(), 0700) != 0) return give_up(unavailable("{}: cannot make logs", unborn));
  std::string candidate = name;
  int number = 0;
  for (int tries = 0; tries < kNameTries; ++tries) {
    const auto texts = files(candidate);
    if (!texts) return give_up(texts.error());
    for (const auto& [file, text] : *texts) {
      if (const auto wrote = write_file(fmt::format("{}/{}", unborn, file), text); !wrote)
        return give_up(wrote.error());
    }
    if (const auto wrote = write_file(unborn + "/open", ""); !wrote) return give_up(wrote.error());
    RunFolder folder(runs, candidate);
    // A folder takes the place of an empty one only, and those of runs are never empty.
    if (::rename(unborn.c_str(), folder.path().c_str()) == 0) {
      folder.lock_ = std::move(lock);
      return folder;
    }
    if (errno != EEXIST && errno != ENOTEMPTY) {
      return give_up(unavailable("{}: cannot make it: {}", folder.path(), errno_text(errno)));
    }
    if (exact && folder.is_watched()) {
      return give_up(
          invalid("a run called '{}' is still there: `pscloud status {}` tells how far it is, and `pscloud "
                  "stop {}` ends it; or choose another --name",
                  name, name, name));
    }
    if (number == 0) {
      const std::string second = numbered_name(name, 2);
      number = last_number(runs, second.substr(0, second.size() - 2)) + 1;
    } else {
      ++number;
    }
    candidate = numbered_name(name, number);
  }
  return give_up(unavailable("{}: no free name is found for the run '{}'", runs, name));
}

Result<RunFolder> RunFolder::open(const std::string& runs, const std::string& name) {
  RunFolder folder(runs, name);
  struct stat info {};
  if (!name.empty() && name.front() != '.' && name.find('/') == std::string::npos &&
      ::stat(folder.path("state.json").c_str(), &info) == 0) {
    return folder;
  }
  std::vector<std::string> names;
  for (const RunEntry& run : list_runs(runs)) names.push_back(run.name);
  if (names.empty()) return not_found("there is no run '{}': `pscloud run --help` tells how to start one", name);
  const std::string near = suggest(name, names);
  return not_found("there is no run '{}'{}", name,
                   near.empty() ? ": `pscloud status` lists them" : fmt::format("; did you mean '{}'?", near));
}

std::string RunFolder::path(std::string_view file) const {
  return file.empty() ? fmt::format("{}/{}", runs_, name_) : fmt::format("{}/{}/{}", runs_, name_, file);
}

bool RunFolder::is_watched() const {
  const Fd file(::open(path("lock").c_str(), O_RDWR | O_CLOEXEC));
  return file && is_locked(file.get());
}

pid_t RunFolder::watcher() const {
  const auto text = read("lock");
  pid_t pid = 0;
  if (text) parse_number<pid_t>(std::string_view(*text).substr(0, text->find(' ')), 1, 1 << 30, pid);
  return pid;
}

Result<> RunFolder::lock() {
  if (lock_) return {};
  Fd file(::open(path("lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return unavailable("{}: cannot open it: {}", path("lock"), errno_text(errno));
  if (!take_lock(file.get())) return unavailable("process {} looks after the run '{}'", watcher(), name_);
  lock_ = std::move(file);
  return write_watcher();
}

Result<> RunFolder::write_watcher() const { return write_process_id(lock_.get()).at(path()); }

Result<> RunFolder::write(std::string_view file, std::string_view text) const { return replace_file(path(file), text); }

Result<> replace_file(const std::string& path, std::string_view text) {
  TRY(write_file(path + ".new", text));
  if (::rename((path + ".new").c_str(), path.c_str()) == 0) return {};
  return unavailable("{}: cannot replace it: {}", path, errno_text(errno));
}

Result<std::string> RunFolder::read(std::string_view file) const {
  const std::string whole = path(file);
  const Fd fd(::open(whole.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return not_found("{}: {}", whole, errno_text(errno));
  return read_to_end(fd.get(), kFileBytesMax).at(whole);
}

Result<RunState> RunFolder::state() const {
  const std::string text = TRY(read("state.json"));
  return parse_run_state(text).at(path("state.json"));
}

void RunFolder::settle() const { ::unlink(path("open").c_str()); }

bool RunFolder::is_settled() const { return ::access(path("open").c_str(), F_OK) != 0; }

std::vector<RunEntry> list_runs(const std::string& runs) {
  std::vector<RunEntry> entries;
  each_name(runs, [&](std::string_view name, int folder) {
    struct stat info {};
    const std::string file(name);
    if (name.front() == '.' || ::fstatat(folder, (file + "/state.json").c_str(), &info, 0) != 0) return;
    RunEntry entry;
    entry.name = file;
    entry.changed_unix_ns = int64_t{info.st_mtim.tv_sec} * 1000000000 + info.st_mtim.tv_nsec;
    entry.settled = ::faccessat(folder, (file + "/open").c_str(), F_OK, 0) != 0;
    entries.push_back(std::move(entry));
  });
  std::ranges::sort(entries, std::greater<>(), &RunEntry::changed_unix_ns);
  return entries;
}

void remove_unborn(const std::string& runs) {
  each_name(runs, [&](std::string_view name, int) {
    if (!name.starts_with(".new-")) return;
    const std::string path = fmt::format("{}/{}", runs, name);
    const Fd lock(::open((path + "/lock").c_str(), O_RDWR | O_CLOEXEC));
    // One without a lock file is a moment old, or was left in that moment.
    if (lock && !is_locked(lock.get())) remove_folder(path);
    if (!lock) ::rmdir(path.c_str());
  });
}

}  // namespace pscloud

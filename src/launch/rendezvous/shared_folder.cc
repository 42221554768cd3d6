#include "launch/rendezvous/shared_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/fd.h"
#include "base/random.h"
#include "base/text.h"
#include "launch/process/write_all.h"

namespace pscloud {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kArrival = "ep.";
constexpr std::string_view kMessages = "out.";

Error shared_file_error(const std::string& path, int number) {
  const Code code = number == ENOENT ? Code::kNotFound : number == EACCES ? Code::kInvalid : Code::kFailed;
  return {code, fmt::format("{}: {}", path, errno_text(number))};
}

// A file that was replaced while it was opened is stale on NFS: the next try finds the new one.
Result<Fd> open_anew(const std::string& path, int flags) {
  for (int tries = 0; tries < 3; ++tries) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
    if (fd >= 0) return Fd(fd);
    if (errno != ESTALE && errno != EINTR) break;
  }
  return shared_file_error(path, errno);
}

// "ep.worker-3.0.json" with the begin "ep." and the end ".json".
std::optional<folder_file::Attempt> attempt_of(std::string_view name, std::string_view begin, std::string_view end) {
  if (!name.starts_with(begin) || !name.ends_with(end)) return {};
  name.remove_prefix(begin.size());
  name.remove_suffix(std::min(end.size(), name.size()));
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return {};
  const auto task = parse_task_id(name.substr(0, dot));
  folder_file::Attempt found;
  if (!task || !parse_number(name.substr(dot + 1), 0, 1 << 20, found.attempt)) return {};
  found.task = *task;
  return found;
}

}  // namespace

namespace folder_file {

std::string spec(int number) { return fmt::format("spec.{}.json", number); }
std::string arrival(TaskId task, int attempt) { return fmt::format("{}{}.{}.json", kArrival, task.text(), attempt); }
std::string messages(TaskId task, int attempt) { return fmt::format("{}{}.{}.jsonl", kMessages, task.text(), attempt); }
std::string stop(TaskId task) { return fmt::format("stop.{}.json", task.text()); }
std::optional<Attempt> of_arrival(std::string_view name) { return attempt_of(name, kArrival, ".json"); }
std::optional<Attempt> of_messages(std::string_view name) { return attempt_of(name, kMessages, ".jsonl"); }

}  // namespace folder_file

Result<SharedFolder> SharedFolder::make(const std::string& shared, const std::string& job) {
  std::error_code failure;
  const fs::path path = fs::absolute(fs::path(shared) / job, failure).lexically_normal();
  fs::create_directories(path.parent_path(), failure);
  if (!failure && ::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    failure.assign(errno, std::generic_category());
  if (failure) return invalid("cannot make the folder {}: {}", path.string(), failure.message());
  return SharedFolder(path.string());
}

Result<SharedFolder> SharedFolder::open(const std::string& path) {
  TRY(open_anew(path, O_RDONLY | O_DIRECTORY));
  return SharedFolder(path);
}

std::string SharedFolder::path_of(std::string_view name) const { return fmt::format("{}/{}", path_, name); }

Result<std::vector<std::string>> SharedFolder::names() const {
  Fd fd = TRY(open_anew(path_, O_RDONLY | O_DIRECTORY));
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::fdopendir(fd.get()), ::closedir);
  if (folder == nullptr) return shared_file_error(path_, errno);
  fd.release();
  std::vector<std::string> names;
  for (errno = 0; const dirent* entry = ::readdir(folder.get()); errno = 0) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  if (errno != 0) return shared_file_error(path_, errno);
  std::ranges::sort(names);
  return names;
}

Result<std::string> SharedFolder::read(std::string_view name, uint64_t bytes_max) const {
  std::string content = TRY(read_from(name, 0, bytes_max + 1));
  if (content.size() > bytes_max) return invalid("{}: longer than {} bytes", path_of(name), bytes_max);
  return content;
}

Result<std::string> SharedFolder::read_from(std::string_view name, uint64_t offset, uint64_t bytes_max) const {
  const std::string path = path_of(name);
  const Fd fd = TRY(open_anew(path, O_RDONLY));
  std::string content;
  char buffer[1 << 16];
  while (content.size() < bytes_max) {
    const ssize_t count = ::pread(fd.get(), buffer, std::min<uint64_t>(sizeof buffer, bytes_max - content.size()),
                                  static_cast<off_t>(offset + content.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return shared_file_error(path, errno);
    if (count == 0) break;
    content.append(buffer, static_cast<size_t>(count));
  }
  return content;
}

Result<SharedFolder::Stamp> SharedFolder::stamp(std::string_view name) const {
  const std::string path = path_of(name);
  const Fd fd = TRY(open_anew(path, O_RDONLY));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return shared_file_error(path, errno);
  return Stamp{status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

Result<std::string> SharedFolder::write_aside(std::string_view name, std::string_view content) const {
  // Process ids repeat on other machines; chance does not.
  const std::string aside = path_of(fmt::format(".{}.{:016x}", name, Random::from_system().next()));
  const Fd fd(::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!fd) return shared_file_error(aside, errno);
  auto written = write_all(fd.get(), content).at(aside);
  // On NFS this is also when the bytes reach the server, or do not.
  if (written && ::fsync(fd.get()) != 0) written = shared_file_error(aside, errno);
  if (!written) {
    ::unlink(aside.c_str());
    return written.error();
  }
  return aside;
}

Result<> SharedFolder::write(std::string_view name, std::string_view content) const {
  const std::string aside = TRY(write_aside(name, content));
  const std::string path = path_of(name);
  if (::rename(aside.c_str(), path.c_str()) == 0) return {};
  const int failure = errno;
  ::unlink(aside.c_str());
  return shared_file_error(path, failure);
}

Result<> SharedFolder::create(std::string_view name, std::string_view content) const {
  const std::string aside = TRY(write_aside(name, content));
  const std::string path = path_of(name);
  // Unlike O_EXCL it is atomic with the content.
  const int linked = ::link(aside.c_str(), path.c_str());
  const int failure = errno;
  ::unlink(aside.c_str());
  if (linked == 0) return {};
  if (failure == EEXIST) return invalid("{}: is there already", path);
  return shared_file_error(path, failure);
}

Result<> SharedFolder::touch(std::string_view name) const {
  const std::string path = path_of(name);
  if (::utimensat(AT_FDCWD, path.c_str(), nullptr, 0) != 0) return shared_file_error(path, errno);
  return {};
}

Result<> SharedFolder::remove(const std::string& path) {
  std::error_code failure;
  // A file that somebody still writes may appear meanwhile, and one that is open stays on NFS under another name.
  for (int tries = 0; tries < 3; ++tries) {
    fs::remove_all(path, failure);
    if (!failure) return {};
  }
  return Error{Code::kFailed, fmt::format("cannot remove the folder {}: {}", path, failure.message())};
}

bool Liveness::alive(const std::optional<SharedFolder::Stamp>& stamp, Now now) {
  if (stamp && stamp != last_) {
    last_ = stamp;
    changed_ = now;
  }
  return now - changed_ < lost_after_;
}

std::chrono::milliseconds Backoff::next() { return std::exchange(next_, std::min(longest_, next_ * 3 / 2)); }

}  // namespace pscloud

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/fd.h"
#include "base/random.h"
#include "io/file_store.h"

namespace pscloud {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFileScheme = "file://";

Result<std::string> path_of(const std::string& uri) {
  if (uri.find('\0') != std::string::npos) return invalid("{}: no file here can have such a name", uri);
  if (uri.starts_with(kFileScheme)) return uri.substr(kFileScheme.size());
  const size_t scheme = uri.find("://");
  if (scheme != std::string::npos) return invalid("{}: no store for {}:// here", uri, uri.substr(0, scheme));
  return uri;
}

// What errno says of a path, with the code that fits.
Error path_error(const std::string& uri, int number) {
  const Code code = number == ENOENT || number == ENOTDIR ? Code::kNotFound
                    : number == EACCES || number == EPERM ? Code::kInvalid
                                                          : Code::kFailed;
  return {code, fmt::format("{}: {}", uri, errno_text(number))};
}

FileInfo info_of(const std::string& uri, const struct stat& status) {
  return {.uri = uri,
          .size = static_cast<uint64_t>(status.st_size),
          // The time alone is not enough: its clock ticks only every few milliseconds.
          .version = fmt::format("{}.{:09}-{}-{}", status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ino,
                                 status.st_size)};
}

// Hidden: patterns of what is to come must not find what is not whole, nor what a kill has left. Nobody else's: neither
// another thread's, whose store counts by itself, nor that of a container which has the same number of process.
std::string aside_name(const std::string& name) {
  return fmt::format(".{}.{}-{}", name, ::getpid(), Random::from_system().next());
}

bool is_aside(std::string_view name) {
  const size_t dot = name.rfind('.');
  const std::string_view numbers = name.substr(dot == std::string_view::npos ? name.size() : dot + 1);
  return dot > 0 && numbers.find('-') != std::string_view::npos &&
         numbers.find_first_not_of("0123456789-") == std::string_view::npos;
}

class LocalInput final : public Input {
 public:
  LocalInput(std::string uri, Fd fd, uint64_t bytes) : uri_(std::move(uri)), fd_(std::move(fd)), left_(bytes) {}

  Result<size_t> read(std::span<char> out) override {
    while (true) {
      const ssize_t count = ::read(fd_.get(), out.data(), std::min<uint64_t>(out.size(), left_));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return path_error(uri_, errno);
      left_ -= static_cast<uint64_t>(count);
      return static_cast<size_t>(count);
    }
  }

 private:
  std::string uri_;
  Fd fd_;
  uint64_t left_;
};

// Writes a file beside the one to come, which it then replaces at once.
class LocalOutput final : public Output {
 public:
  LocalOutput(std::string path, std::string aside, Fd fd)
      : path_(std::move(path)), aside_(std::move(aside)), fd_(std::move(fd)) {}
  ~LocalOutput() override {
    if (!aside_.empty()) ::unlink(aside_.c_str());
  }

  Result<> write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t count = ::write(fd_.get(), bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return path_error(path_, errno);
      bytes.remove_prefix(static_cast<size_t>(count));
      written_ += count;
    }
    // The disk begins meanwhile, so that commit() has less to wait for. Where this cannot be it only costs time.
    if (written_ - begun_ >= kBeginBytes) {
      (void)::sync_file_range(fd_.get(), begun_, written_ - begun_, SYNC_FILE_RANGE_WRITE);
      begun_ = written_;
    }
    return {};
  }

  Result<> commit() override {
    // Without the first a crash of the machine may leave the new name with old, or no, contents.
    if (::fdatasync(fd_.get()) != 0) return path_error(path_, errno);
    if (::rename(aside_.c_str(), path_.c_str()) != 0) return path_error(path_, errno);
    aside_.clear();
    return {};
  }

 private:
  static constexpr off_t kBeginBytes = 1 << 20;

  std::string path_;
  std::string aside_;
  Fd fd_;
  off_t written_ = 0;
  off_t begun_ = 0;  // of these, the disk was told to begin with
};

class LocalStore final : public FileStore {
 public:
  Result<FileInfo> stat(const std::string& uri) override {
    struct stat status {};
    if (::stat(TRY(path_of(uri)).c_str(), &status) != 0) return path_error(uri, errno);
    if (S_ISDIR(status.st_mode)) return invalid("{}: is a folder, not a file", uri);
    return info_of(uri, status);
  }

  Result<std::vector<FileInfo>> list(const std::string& folder) override {
    const std::string path = TRY(path_of(folder));
    std::error_code error;
    std::vector<FileInfo> files;
    for (auto entry = fs::directory_iterator(path.empty() ? "." : path, error);
         !error && entry != fs::directory_iterator(); entry.increment(error)) {
      struct stat status {};
      // One that is gone since, or that a link leads nowhere from, is not there.
      const std::string name = entry->path().filename().string();
      if (name.starts_with('.') || ::stat(entry->path().c_str(), &status) != 0 || S_ISDIR(status.st_mode)) continue;
      const bool slash = folder.empty() || folder.back() == '/';
      files.push_back(info_of(fmt::format("{}{}{}", folder, slash ? "" : "/", name), status));
    }
    if (error) return path_error(folder, error.value());
    std::ranges::sort(files, {}, &FileInfo::uri);
    return files;
  }

  Result<std::vector<std::string>> list_folders(const std::string& folder) override {
    const std::string path = TRY(path_of(folder));
    std::error_code error;
    std::vector<std::string> folders;
    for (auto entry = fs::directory_iterator(path.empty() ? "." : path, error);
         !error && entry != fs::directory_iterator(); entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      std::error_code gone;
      if (name.starts_with('.') || !entry->is_directory(gone)) continue;
      const bool slash = folder.empty() || folder.back() == '/';
      folders.push_back(fmt::format("{}{}{}/", folder, slash ? "" : "/", name));
    }
    if (error) return path_error(folder, error.value());
    std::ranges::sort(folders);
    return folders;
  }

  Result<std::unique_ptr<Input>> open(const std::string& uri, ByteRange range) override {
    Fd fd(::open(TRY(path_of(uri)).c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return path_error(uri, errno);
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) return path_error(uri, errno);
    if (S_ISDIR(status.st_mode)) return invalid("{}: is a folder, not a file", uri);
    const FileInfo info = info_of(uri, status);
    if (!range.version.empty() && info.version != range.version) {
      return version_changed(uri, range.version, info.version);
    }
    if (range.begin > 0 && ::lseek(fd.get(), static_cast<off_t>(range.begin), SEEK_SET) < 0) {
      return path_error(uri, errno);
    }
    (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    return std::make_unique<LocalInput>(uri, std::move(fd), range.end - std::min(range.begin, range.end));
  }

  Result<std::unique_ptr<Output>> create(const std::string& uri) override {
    const std::string path = TRY(path_of(uri));
    std::error_code error;
    const fs::path folder = fs::path(path).parent_path();
    if (!folder.empty()) fs::create_directories(folder, error);
    if (error) return path_error(folder.string(), error.value());
    if (fs::is_directory(path, error)) return invalid("{}: is a folder, not a file", uri);
    std::string aside = (folder / aside_name(fs::path(path).filename().string())).string();
    Fd fd(::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!fd) return path_error(uri, errno);
    return std::make_unique<LocalOutput>(path, std::move(aside), std::move(fd));
  }

  Result<> check_create(const std::string& uri) override {
    std::error_code error;
    const fs::path parent = fs::path(TRY(path_of(uri))).parent_path();
    fs::path folder = parent;
    while (!folder.empty() && !fs::exists(folder, error)) folder = folder.parent_path();
    if (folder == parent) {
      TRY(create(uri));
      return {};
    }
    // Folders that are missing are not made: removed again, they would be pulled away from another who makes them too.
    if (folder.empty()) folder = ".";
    if (!fs::is_directory(folder, error)) return path_error(folder.string(), ENOTDIR);
    if (::access(folder.c_str(), W_OK | X_OK) != 0) return path_error(folder.string(), errno);
    return {};
  }

  Result<> remove(const std::string& uri) override {
    if (::unlink(TRY(path_of(uri)).c_str()) != 0 && errno != ENOENT) return path_error(uri, errno);
    return {};
  }

  Result<> remove_unfinished(const std::string& uri_begin) override {
    const fs::path path = TRY(path_of(uri_begin));
    const std::string begin = fmt::format(".{}", path.filename().string());
    const fs::path folder = path.parent_path();
    std::error_code error;
    std::vector<std::string> found;
    for (auto entry = fs::directory_iterator(folder.empty() ? "." : folder, error);
         !error && entry != fs::directory_iterator(); entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (name.starts_with(begin) && is_aside(name)) found.push_back(entry->path().string());
    }
    if (error) return path_error(uri_begin, error.value());
    for (const std::string& one : found) TRY(remove(one));
    return {};
  }
};

}  // namespace

std::unique_ptr<FileStore> make_local_store() { return std::make_unique<LocalStore>(); }

}  // namespace pscloud

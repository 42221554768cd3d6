#include "launch/bundle/shipped_files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include "base/fd.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "launch/process/write_all.h"

namespace pscloud {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPieceBytes = 4 << 20;

// A chain over the pieces, so that a large file needs no more memory than one of them.
class FileHash {
 public:
  void add(std::string_view piece) {
    const Hash128 hash = hash128(std::as_bytes(std::span(piece.data(), piece.size())));
    const uint64_t chain[] = {state_.low, state_.high, hash.low, hash.high};
    state_ = hash128(std::as_bytes(std::span(chain)));
  }
  std::string text() const { return fmt::format("{:016x}{:016x}", state_.high, state_.low); }

 private:
  Hash128 state_;
};

bool is_hash(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_relative_name(const std::string& name) {
  const fs::path path(name);
  return !name.empty() && path.is_relative() &&
         std::ranges::none_of(path, [](const fs::path& part) { return part == ".." || part == "."; });
}

Result<std::string> hash_of_file(const std::string& path) {
  FileHash hash;
  TRY(read_pieces(path, [&](std::string_view piece, bool) -> Result<> {
    hash.add(piece);
    return {};
  }));
  return hash.text();
}

Result<ShippedFile> shipped_file(const fs::path& path, std::string name) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return not_found("'{}': {}", path.string(), errno_text(errno));
  if (!S_ISREG(info.st_mode)) return invalid("'{}' is neither a file nor a folder", path.string());
  return ShippedFile{.name = std::move(name),
                     .hash = TRY(hash_of_file(path.string())),
                     .bytes = static_cast<uint64_t>(info.st_size),
                     .executable = (info.st_mode & S_IXUSR) != 0,
                     .path = path.string()};
}

// Where the file system can, the copy costs nothing until one of the two is written to.
Result<> copy_privately(const std::string& from, const std::string& to, bool executable) {
  const Fd source(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (!source) return unavailable("cannot read '{}': {}", from, errno_text(errno));
  const mode_t mode = executable ? 0700 : 0600;
  const Fd copy(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!copy || ::fchmod(copy.get(), mode) != 0) return unavailable("cannot make '{}': {}", to, errno_text(errno));
  if (::ioctl(copy.get(), FICLONE, source.get()) == 0) return {};
  ssize_t wrote = 0;
  while ((wrote = ::sendfile(copy.get(), source.get(), nullptr, size_t{1} << 30)) > 0) continue;
  if (wrote < 0) return unavailable("cannot write '{}': {}", to, errno_text(errno));
  return {};
}

}  // namespace

Result<> read_pieces(const std::string& path, const std::function<Result<>(std::string_view piece, bool last)>& take) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return not_found("'{}': {}", path, errno_text(errno));
  std::string piece(kPieceBytes, '\0');
  while (true) {
    size_t filled = 0;
    while (filled < piece.size()) {
      const ssize_t count = ::read(file.get(), piece.data() + filled, piece.size() - filled);
      if (count < 0) return unavailable("'{}': {}", path, errno_text(errno));
      if (count == 0) break;
      filled += static_cast<size_t>(count);
    }
    const bool last = filled < piece.size();
    TRY(take(std::string_view(piece).substr(0, filled), last));
    if (last) return {};
  }
}

Result<std::vector<ShippedFile>> list_shipped(const std::vector<std::string>& paths) {
  std::vector<ShippedFile> files;
  for (const std::string& text : paths) {
    fs::path path = fs::path(text).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();  // "folder/"
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(TRY(shipped_file(path, path.filename().string())));
      continue;
    }
    for (fs::recursive_directory_iterator each(path, error), end; !error && each != end; each.increment(error)) {
      if (each->is_directory()) continue;
      const fs::path name = path.filename() / each->path().lexically_relative(path);
      files.push_back(TRY(shipped_file(each->path(), name.string())));
    }
    if (error) return unavailable("'{}': {}", text, error.message());
  }
  std::set<std::string> names;
  for (const ShippedFile& file : files) {
    if (!is_utf8(file.name)) return invalid("the name '{}' of a file to copy is not UTF-8", escape_controls(file.name));
    if (!names.insert(file.name).second) return invalid("two files to copy are called '{}'", file.name);
  }
  return files;
}

std::string shipped_json(const std::vector<ShippedFile>& files) {
  JsonWriter json;
  json.begin_array();
  for (const ShippedFile& file : files) {
    json.begin_object().field("name", file.name).field("hash", file.hash).field("bytes", file.bytes);
    json.field("executable", file.executable).end_object();
  }
  return json.end_array().text();
}

Result<std::vector<ShippedFile>> parse_shipped(const JsonValue& array) {
  std::vector<ShippedFile> files;
  for (const JsonValue& value : array.items()) {
    ShippedFile file;
    file.name = value["name"].text();
    file.hash = value["hash"].text();
    file.bytes = static_cast<uint64_t>(std::max<int64_t>(value["bytes"].integer(), 0));
    file.executable = value["executable"].truth();
    if (!is_relative_name(file.name)) return corrupt("'{}' is no name of a file in a folder", file.name);
    if (!is_hash(file.hash)) return corrupt("'{}' is no hash of a file", file.hash);
    files.push_back(std::move(file));
  }
  return files;
}

bool FileCache::has(const ShippedFile& file) const {
  std::error_code error;
  if (fs::file_size(path_of(file.hash), error) != file.bytes || error) return false;
  // Whoever runs as the owner could have changed it.
  const auto hash = hash_of_file(path_of(file.hash));
  if (!hash || *hash != file.hash) return false;
  // Else it could be removed before it is placed.
  fs::last_write_time(path_of(file.hash), fs::file_time_type::clock::now(), error);
  return !error;
}

Result<> FileCache::put(const std::string& hash, std::string_view piece, bool last) {
  if (!is_hash(hash)) return corrupt("'{}' is no hash of a file", hash);
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return unavailable("cannot make the folder '{}': {}", folder_, error.message());
  // Of this process alone: another one may receive the same.
  const std::string aside = fmt::format("{}.{}", path_of(hash), ::getpid());
  const Fd file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0700));
  if (!file) return unavailable("cannot make '{}': {}", aside, errno_text(errno));
  TRY(write_all(file.get(), piece).at(aside));
  if (!last) return {};
  const auto came = hash_of_file(aside);
  if (!came || *came != hash) {
    fs::remove(aside, error);
    return corrupt("a file came that is not what was sent; it changed meanwhile?");
  }
  fs::rename(aside, path_of(hash), error);
  if (error) return unavailable("cannot write '{}': {}", path_of(hash), error.message());
  return {};
}

void FileCache::prune(fs::file_time_type before) const {
  std::error_code error;
  for (fs::directory_iterator each(folder_, error), end; !error && each != end; each.increment(error)) {
    std::error_code gone;
    if (each->last_write_time(gone) < before && !gone) fs::remove(each->path(), gone);
  }
}

Result<> FileCache::place(const std::vector<ShippedFile>& files, const std::string& folder) const {
  for (const ShippedFile& file : files) {
    const fs::path target = fs::path(folder) / file.name;
    std::error_code error;
    fs::create_directories(target.parent_path(), error);
    if (error) return unavailable("cannot make '{}': {}", target.string(), error.message());
    TRY(copy_privately(path_of(file.hash), target.string(), file.executable));
  }
  return {};
}

}  // namespace pscloud

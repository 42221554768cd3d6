#include "cli/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/fd.h"
#include "launch/process/read_to_end.h"

namespace pscloud {
namespace {

constexpr size_t kSmallFileMax = 1 << 20;

Result<> make_private_folder(const std::filesystem::path& path) {
  std::error_code error;
  if (path.empty() || std::filesystem::is_directory(path, error)) return {};
  TRY(make_private_folder(path.parent_path()));
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return unavailable("{}: cannot make this folder: {}", path.string(), errno_text(errno));
}

}  // namespace

Result<> write_private_file(const std::string& path, std::string_view text) {
  TRY(make_private_folder(std::filesystem::path(path).parent_path()));
  ::unlink(path.c_str());  // whoever has the old one open does not get the new
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return unavailable("{}: cannot make it: {}", path, errno_text(errno));
  if (::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return {};
  return unavailable("{}: cannot write it: {}", path, errno_text(errno));
}

Result<std::string> read_small_file(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return not_found("{}: {}", path, errno_text(errno));
  return read_to_end(file.get(), kSmallFileMax).at(path);
}

}  // namespace pscloud

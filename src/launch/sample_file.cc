#include "launch/sample_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <functional>
#include <unordered_map>

#include "launch/process/read_to_end.h"
#include "launch/run_folder.h"

namespace pscloud {
namespace {

constexpr int kOpenFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
constexpr double kFirstShare = 1.0 / 4096;
constexpr uint64_t kPendingMax = 16 << 20;  // that one append() may bring

// Of "unix_ms,task,name,value".
struct SampleRow {
  int64_t unix_ms = 0;
  size_t series = 0;  // a hash of "task,name"
};
SampleRow row_of(std::string_view line) {
  const size_t first = std::min(line.find(','), line.size());
  const size_t last = line.rfind(',');
  SampleRow row;
  std::from_chars(line.data(), line.data() + first, row.unix_ms);
  if (last != std::string_view::npos) row.series = std::hash<std::string_view>()(line.substr(first, last - first));
  return row;
}

// Those lines whose distance to the one before in their series is at least this share of their age.
std::string thinned(std::string_view lines, double share, int64_t now_unix_ms) {
  std::unordered_map<size_t, int64_t> kept;  // the last of each series
  std::string result;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, std::min(lines.find('\n'), lines.size() - 1) + 1);
    lines.remove_prefix(line.size());
    const SampleRow row = row_of(line);
    const auto [last, is_first] = kept.try_emplace(row.series, row.unix_ms);
    const auto age = static_cast<double>(now_unix_ms - row.unix_ms);
    if (!is_first && static_cast<double>(row.unix_ms - last->second) < share * age) continue;
    last->second = row.unix_ms;
    result += line;
  }
  return result;
}

}  // namespace

Result<> SampleFile::open() {
  file_ = Fd(::open(path_.c_str(), kOpenFlags, 0600));
  struct stat info {};
  if (!file_ || ::fstat(file_.get(), &info) != 0)
    return unavailable("{}: cannot open it: {}", path_, errno_text(errno));
  bytes_ = static_cast<uint64_t>(info.st_size);
  return {};
}

Result<> SampleFile::append(std::string_view rows) {
  if (!file_) TRY(open());
  while (!rows.empty()) {
    const ssize_t wrote = ::write(file_.get(), rows.data(), rows.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return unavailable("{}: cannot write to it: {}", path_, errno_text(errno));
    rows.remove_prefix(static_cast<size_t>(wrote));
    bytes_ += static_cast<uint64_t>(wrote);
  }
  return bytes_ > bytes_max_ ? thin_out() : Result<>();
}

Result<> SampleFile::thin_out() {
  const Fd old(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  const std::string all = TRY(read_to_end(old.get(), 2 * bytes_max_ + kPendingMax).at(path_));
  const int64_t now_unix_ms = row_of(std::string_view(all).substr(all.rfind('\n', all.size() - 2) + 1)).unix_ms;
  std::string left = thinned(all, kFirstShare, now_unix_ms);
  for (double share = 2 * kFirstShare; left.size() > bytes_max_ / 2 && share < 2; share *= 2) {
    left = thinned(left, share, now_unix_ms);
  }
  const auto replaced = replace_file(path_, left);
  bytes_ = 0;  // or each line that is appended would try it again if it failed
  TRY(replaced);
  return open();
}

}  // namespace pscloud

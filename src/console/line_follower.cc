#include "console/line_follower.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace pscloud {
namespace {

constexpr size_t kFollowedBytes = 256 << 10;  // at once
constexpr size_t kFollowedLineMax = 64 << 10;

}  // namespace

LineFollower::LineFollower(std::string path, From from) : path_(std::move(path)) {
  if (from == From::kStart || !open()) return;
  struct stat info {};
  ::fstat(file_.get(), &info);
  const auto size = static_cast<uint64_t>(std::max<off_t>(info.st_size, 0));
  const uint64_t begin = size - std::min<uint64_t>(size, kFollowedLineMax);
  buffer_.resize(size - begin);
  const ssize_t got = ::pread(file_.get(), buffer_.data(), buffer_.size(), static_cast<off_t>(begin));
  const size_t end = std::string_view(buffer_.data(), static_cast<size_t>(std::max<ssize_t>(got, 0))).rfind('\n');
  // A line that is longer than that is joined in its middle.
  offset_ = end == std::string_view::npos ? (begin == 0 ? 0 : size) : begin + end + 1;
}

bool LineFollower::open() {
  if (!file_) file_ = Fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  return static_cast<bool>(file_);
}

bool LineFollower::read(std::vector<std::string_view>& lines, bool last) {
  lines.clear();
  if (!open()) return false;
  // Mostly there is nothing new: no memory is touched for that.
  struct stat info {};
  if (::fstat(file_.get(), &info) != 0 || static_cast<uint64_t>(info.st_size) <= offset_) return false;
  buffer_.resize(kFollowedBytes);
  const ssize_t got = ::pread(file_.get(), buffer_.data(), buffer_.size(), static_cast<off_t>(offset_));
  if (got <= 0) return false;
  std::string_view text(buffer_.data(), static_cast<size_t>(got));
  const bool more = text.size() == buffer_.size();
  size_t taken = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const bool whole = end <= kFollowedLineMax;  // npos is not
    if (!whole && text.size() < kFollowedLineMax && (!last || more)) break;
    const std::string_view line = text.substr(0, whole ? end : std::min(text.size(), kFollowedLineMax));
    lines.push_back(line);
    taken += line.size() + (whole ? 1 : 0);
    text.remove_prefix(line.size() + (whole ? 1 : 0));
  }
  offset_ += taken;
  return more;
}

}  // namespace pscloud

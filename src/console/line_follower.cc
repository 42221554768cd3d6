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

bool LineFollower::is_replaced() const {
  struct stat there {};
  struct stat here {};
  if (::stat(path_.c_str(), &there) != 0 || ::fstat(file_.get(), &here) != 0) return false;
  return there.st_ino != here.st_ino || there.st_dev != here.st_dev;
}

std::string LineFollower::last_line() {
  const uint64_t begin = offset_ - std::min<uint64_t>(offset_, kFollowedLineMax);
  std::string text(offset_ - begin, '\0');
  if (::pread(file_.get(), text.data(), text.size(), static_cast<off_t>(begin)) != static_cast<ssize_t>(text.size()) ||
      text.size() < 2) {
    return "";
  }
  const size_t before = text.rfind('\n', text.size() - 2);
  return before == std::string::npos ? text : text.substr(before + 1);
}

// Behind the line that was the last of the old file. It is near the end: the new one was looked for soon.
void LineFollower::go_on_in_new_file() {
  const std::string line = last_line();
  file_ = Fd();
  offset_ = 0;
  struct stat info {};
  if (!open() || ::fstat(file_.get(), &info) != 0 || line.empty()) return;
  const auto size = static_cast<uint64_t>(info.st_size);
  const uint64_t begin = size - std::min<uint64_t>(size, kFollowedBytes);
  std::string text(size - begin, '\0');
  const ssize_t got = ::pread(file_.get(), text.data(), text.size(), static_cast<off_t>(begin));
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  size_t at = text.rfind(line);
  while (at != std::string::npos && at > 0 && text[at - 1] != '\n') at = text.rfind(line, at - 1);
  offset_ = at == std::string::npos ? size : begin + at + line.size();
}

bool LineFollower::read(std::vector<std::string_view>& lines, bool last) {
  lines.clear();
  if (!open()) return false;
  const bool replaced = is_replaced();  // asked before: nothing comes to the old file after
  // Mostly there is nothing new: no memory is touched for that.
  struct stat info {};
  if (::fstat(file_.get(), &info) != 0) return false;
  if (static_cast<uint64_t>(info.st_size) <= offset_) {
    if (replaced) go_on_in_new_file();
    return replaced;
  }
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

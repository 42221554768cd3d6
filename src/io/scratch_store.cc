#include "io/scratch_store.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace pscloud {
namespace {

Error scratch_error(const std::string& folder, int number) {
  return unavailable("temporary files in {}: {}", folder, errno_text(number));
}

// What the user may have of the disk.
Result<uint64_t> free_bytes(int fd, const std::string& folder) {
  struct statvfs status {};
  if (::fstatvfs(fd, &status) != 0) return scratch_error(folder, errno);
  return uint64_t{status.f_bavail} * status.f_frsize;
}

// A file without a name; not every file system can make one at once.
Result<Fd> open_nameless(const std::string& folder) {
  Fd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd) return fd;
  if (errno != EOPNOTSUPP && errno != EISDIR) return scratch_error(folder, errno);
  std::string name = fmt::format("{}/pscloud-XXXXXX", folder);
  fd = Fd(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd || ::unlink(name.c_str()) != 0) return scratch_error(folder, errno);
  return fd;
}

}  // namespace

class ScratchStore::ScratchInput final : public Input {
 public:
  ScratchInput(const ScratchStore& store, Extents extents, const ByteRange& range)
      : store_(store), extents_(std::move(extents)), skip_(range.begin), left_(range.end - range.begin) {}

  Result<size_t> read(std::span<char> out) override {
    for (; at_ < extents_.size() && skip_ >= extents_[at_].size; ++at_) skip_ -= extents_[at_].size;
    if (at_ == extents_.size()) return size_t{0};
    const Extent& here = extents_[at_];
    const size_t most = std::min<uint64_t>({out.size(), here.size - skip_, left_});
    while (true) {
      const ssize_t count = ::pread(store_.fd_.get(), out.data(), most, static_cast<off_t>(here.offset + skip_));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return scratch_error(store_.folder_, errno);
      skip_ += static_cast<uint64_t>(count);
      left_ -= static_cast<uint64_t>(count);
      return static_cast<size_t>(count);
    }
  }

 private:
  const ScratchStore& store_;
  const Extents extents_;
  size_t at_ = 0;
  uint64_t skip_;  // of that extent
  uint64_t left_;
};

class ScratchStore::ScratchOutput final : public Output {
 public:
  ScratchOutput(ScratchStore& store, std::string uri) : store_(store), uri_(std::move(uri)) {}

  Result<> write(std::string_view bytes) override {
    const Extent written = TRY(store_.append(bytes));
    const bool follows = !extents_.empty() && extents_.back().offset + extents_.back().size == written.offset;
    if (follows) {
      extents_.back().size += written.size;
    } else {
      extents_.push_back(written);
    }
    return {};
  }
  Result<> commit() override {
    store_.commit(uri_, std::exchange(extents_, {}));
    return {};
  }

 private:
  ScratchStore& store_;
  const std::string uri_;
  Extents extents_;
};

Result<std::unique_ptr<ScratchStore>> ScratchStore::make(const std::string& folder) {
  Fd fd = TRY(open_nameless(folder));
  const uint64_t free = TRY(free_bytes(fd.get(), folder));
  return std::unique_ptr<ScratchStore>(new ScratchStore(std::move(fd), folder, free / 2));
}

// The room is taken under the lock, and filled without it.
Result<ScratchStore::Extent> ScratchStore::append(std::string_view bytes) {
  if (TRY(free_bytes(fd_.get(), folder_)) < free_min_ + bytes.size()) {
    return unavailable("temporary files in {}: they may take half of the room, and that is full", folder_);
  }
  Extent extent{.offset = 0, .size = bytes.size()};
  {
    MutexLock lock(mutex_);
    extent.offset = std::exchange(size_, size_ + bytes.size());
  }
  for (uint64_t at = extent.offset; !bytes.empty();) {
    const ssize_t count = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return scratch_error(folder_, errno);
    bytes.remove_prefix(static_cast<size_t>(count));
    at += static_cast<uint64_t>(count);
  }
  return extent;
}

void ScratchStore::commit(const std::string& uri, Extents extents) {
  MutexLock lock(mutex_);
  files_[uri] = std::move(extents);
}

Result<ScratchStore::Extents> ScratchStore::find(const std::string& uri) {
  MutexLock lock(mutex_);
  const auto found = files_.find(uri);
  if (found == files_.end()) return not_found("{}: no such temporary file", uri);
  return found->second;
}

Result<FileInfo> ScratchStore::stat(const std::string& uri) {
  const Extents extents = TRY(find(uri));
  FileInfo info;
  info.uri = uri;
  for (const Extent& extent : extents) info.size += extent.size;
  // No two files begin at one place.
  info.version = fmt::format("{}-{}", extents.empty() ? 0 : extents.front().offset, info.size);
  return info;
}

Result<std::unique_ptr<Input>> ScratchStore::open(const std::string& uri, ByteRange range) {
  const FileInfo info = TRY(stat(uri));
  if (!range.version.empty() && range.version != info.version) {
    return version_changed(uri, range.version, info.version);
  }
  range.begin = std::min(range.begin, range.end);
  return std::make_unique<ScratchInput>(*this, TRY(find(uri)), range);
}

Result<std::unique_ptr<Output>> ScratchStore::create(const std::string& uri) {
  return std::make_unique<ScratchOutput>(*this, uri);
}

Result<> ScratchStore::remove(const std::string& uri) {
  MutexLock lock(mutex_);
  files_.erase(uri);
  return {};
}

Result<std::vector<FileInfo>> ScratchStore::list(const std::string& folder) {
  return invalid("{}: temporary files are not listed", folder);
}
Result<std::vector<std::string>> ScratchStore::list_folders(const std::string& folder) {
  return invalid("{}: temporary files are not listed", folder);
}

}  // namespace pscloud

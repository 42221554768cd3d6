#include "net/shm/segment.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace pscloud {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Error cannot(const char* what, size_t size) {
  return unavailable("cannot {} {} bytes of shared memory: {}", what, size, errno_text(errno));
}

}  // namespace

Result<std::shared_ptr<ShmSegment>> ShmSegment::make(size_t size) {
  Fd fd(memfd_create("pscloud", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return cannot("make", size);
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return cannot("seal", size);
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return cannot("map", size);
  // What the peer gets is opened anew for reading: it can map no page to write.
  const std::string path = fmt::format("/proc/self/fd/{}", fd.get());
  Fd for_peer(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!for_peer) {
    const Error why = cannot("open", size);
    munmap(data, size);
    return why;
  }
  madvise(data, size, MADV_HUGEPAGE);  // where the system gives them to shared memory
  return std::shared_ptr<ShmSegment>(new ShmSegment(std::move(for_peer), static_cast<std::byte*>(data), size));
}

Result<std::shared_ptr<ShmSegment>> ShmSegment::map_peers(Fd fd, size_t size) {
  struct stat info {};
  if (fstat(fd.get(), &info) != 0 || static_cast<uint64_t>(info.st_size) != size || size == 0) {
    return corrupt("the peer's shared memory does not have the {} bytes it is said to have", size);
  }
  // Without these it could be cut short while we read: the system would kill us.
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) return corrupt("the peer's shared memory can change its size");
  void* data = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return cannot("map", size);
  return std::shared_ptr<ShmSegment>(new ShmSegment({}, static_cast<std::byte*>(data), size));
}

ShmSegment::~ShmSegment() { munmap(data_, size_); }

}  // namespace pscloud

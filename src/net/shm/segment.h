#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "net/socket.h"
#include "pscloud/error.h"

namespace pscloud {

// Memory that two processes see. The one that made it writes, the other may only read. It has no name and its size can
// never change: it is gone with the last process that has it, and no peer can make a read of it fail.
class ShmSegment {
 public:
  // Ours, to write. Its pages are taken from the system when they are first touched.
  static Result<std::shared_ptr<ShmSegment>> make(size_t size);
  // A peer's, to read: `fd` must be what make() makes, of exactly this size. kCorrupt if it is not.
  static Result<std::shared_ptr<ShmSegment>> map_peers(Fd fd, size_t size);
  ~ShmSegment();
  ShmSegment(const ShmSegment&) = delete;
  ShmSegment& operator=(const ShmSegment&) = delete;

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  bool holds(const std::byte* first, size_t size) const {
    const auto begin = reinterpret_cast<uintptr_t>(data_);
    const auto at = reinterpret_cast<uintptr_t>(first);
    return at >= begin && at - begin <= size_ && size <= size_ - (at - begin);
  }
  // To hand to the peer; it cannot write through it.
  int fd() const { return fd_.get(); }

 private:
  ShmSegment(Fd fd, std::byte* data, size_t size) : fd_(std::move(fd)), data_(data), size_(size) {}

  const Fd fd_;  // opened for reading only; none for a peer's, whose pages are mapped
  std::byte* const data_;
  const size_t size_;
};

}  // namespace pscloud

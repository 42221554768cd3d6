// A peer that writes anything into its shared memory: the slots of its ring, its numbers, and what it says over the
// socket.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "net/shm/link.h"

namespace pscloud {
namespace {

constexpr size_t kSegmentBytes = 1 << 20;
constexpr size_t kSlotsAt = 4096;

struct Memory {
  Memory() : fd(memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    CHECK(ftruncate(fd.get(), kSegmentBytes) == 0);
    CHECK(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
    data = static_cast<std::byte*>(mmap(nullptr, kSegmentBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0));
    CHECK(data != MAP_FAILED);
  }
  ~Memory() { munmap(data, kSegmentBytes); }
  Fd fd;
  std::byte* data = nullptr;
};

// Input: u32 slots sent, u32 slots taken; a byte, how many bytes follow it for the socket, and these; then slots.
void run(Bytes input) {
  if (input.size() < 9) return;
  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  const Fd here(ends[0]);
  const Fd there(ends[1]);
  const LentMemory lent;
  BufferPool pool(0);
  auto link = ShmLink::make(here.get(), false, lent);
  CHECK(link.has_value(), "{}", link.error().message);
  Memory memory;
  const int fds[] = {memory.fd.get(), there.get()};
  CHECK(send_handover(there.get(), {ShmHandover::kHello, 0, kSegmentBytes}, fds).has_value());
  // Memory that it lends: frames may lie there, also after it was taken back.
  const Memory lent_by_peer;
  for (const uint32_t number : {1, 2}) {
    const int fd = lent_by_peer.fd.get();
    CHECK(send_handover(there.get(), {ShmHandover::kSegment, number, kSegmentBytes}, {&fd, 1}).has_value());
  }
  CHECK((*link)->exchange().value());
  (*link)->send({.header = {.type = FrameType::kPush}, .payload = std::make_shared<const Buffer>(1000)});

  const auto said = std::min(static_cast<size_t>(input[8]), input.size() - 9);
  CHECK(said == 0 || send(there.get(), input.data() + 9, said, 0) == static_cast<ssize_t>(said));
  const Bytes slots = input.subspan(9 + said);
  std::memcpy(memory.data + kSlotsAt, slots.data(), std::min(slots.size(), kSlots * sizeof(ShmSlot)));
  std::memcpy(memory.data + 64, input.data() + 4, 4);  // taken

  uint32_t step = 0;
  std::memcpy(&step, input.data(), sizeof step);
  size_t bytes = 0;
  std::vector<Frame> kept;
  // More than once round the ring: what was lent may be gone and come again.
  for (uint32_t sent = step, round = 0; round < 3; ++round, sent += step) {
    std::memcpy(memory.data, &sent, sizeof sent);
    const auto received = (*link)->receive(kPayloadBytesMax, pool, [&](Frame frame) {
      // Every byte of a frame can be read.
      for (const std::byte byte : frame.bytes()) bytes += static_cast<size_t>(byte);
      for (const std::byte byte : frame.value_bytes()) bytes += static_cast<size_t>(byte);
      CHECK(frame.payload_size() == frame.header.payload_bytes);
      if (kept.size() < 3) kept.push_back(std::move(frame));
      return true;
    });
    if (!received) return;
    kept.clear();
    (*link)->flush();
    (void)(*link)->exchange();
    (void)(*link)->prepare_sleep();
  }
}

}  // namespace
}  // namespace pscloud

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pscloud::run(std::as_bytes(std::span(data, size)));
  return 0;
}

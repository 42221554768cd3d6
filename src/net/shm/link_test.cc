#include "net/shm/link.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace pscloud {
namespace {

using testing::HasSubstr;

Frame frame_of(uint64_t seq, size_t head, size_t values) {
  Frame frame;
  frame.header.type = FrameType::kPush;
  frame.header.seq = seq;
  const auto filled = [&](size_t size) {
    Buffer buffer(size);
    for (size_t i = 0; i < size; ++i) buffer.data()[i] = static_cast<std::byte>(seq + i);
    return std::make_shared<const Buffer>(std::move(buffer));
  };
  if (head > 0) frame.payload = filled(head);
  if (values > 0) frame.values = filled(values);
  return frame;
}

std::vector<std::byte> all_bytes(const Frame& frame) {
  std::vector<std::byte> bytes(frame.bytes().begin(), frame.bytes().end());
  bytes.insert(bytes.end(), frame.value_bytes().begin(), frame.value_bytes().end());
  return bytes;
}

// Two ends in one process: each has its own mapping, as two processes would.
class ShmLinkTest : public testing::Test {
 protected:
  ShmLinkTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    server_socket_ = Fd(ends[0]);
    worker_socket_ = Fd(ends[1]);
    server_ = ShmLink::make(server_socket_.get(), true, server_lent_).value();
    worker_ = ShmLink::make(worker_socket_.get(), false, worker_lent_).value();
  }
  void connect() {
    ASSERT_TRUE(worker_->exchange().value());
    ASSERT_TRUE(server_->exchange().value());
  }
  Result<std::vector<Frame>> receive(ShmLink& link, uint32_t payload_max = kPayloadBytesMax) {
    std::vector<Frame> frames;
    TRY(link.receive(payload_max, pool_, [&](Frame frame) {
      frames.push_back(std::move(frame));
      return true;
    }));
    return frames;
  }

  BufferPool pool_{1 << 20};
  LentMemory server_lent_;
  LentMemory worker_lent_;
  Fd server_socket_;
  Fd worker_socket_;
  std::unique_ptr<ShmLink> server_;
  std::unique_ptr<ShmLink> worker_;
};

TEST_F(ShmLinkTest, FramesOfEverySizeArriveWhole) {
  connect();
  uint64_t seq = 0;
  for (const auto& [head, values] : std::vector<std::pair<size_t, size_t>>{
           {0, 0}, {1, 0}, {0, 4}, {152, 0}, {100, 52}, {153, 0}, {8, 400}, {100000, 1 << 20}, {0, 16 << 20}}) {
    const Frame sent = frame_of(++seq, head, values);
    worker_->send(sent);
    const auto got = receive(*server_);
    ASSERT_TRUE(got) << got.error().message;
    ASSERT_EQ(got->size(), 1u) << head << " " << values;
    EXPECT_EQ(got->front().header.seq, seq);
    EXPECT_EQ(all_bytes(got->front()), all_bytes(sent));
  }
}

TEST_F(ShmLinkTest, MoreThanThereIsRoomForWaitsAndArrivesInOrder) {
  connect();
  constexpr uint64_t kFrames = 3000;
  for (uint64_t i = 1; i <= kFrames; ++i) worker_->send(frame_of(i, 0, i % 7 == 0 ? 200000 : 16));
  EXPECT_GT(worker_->unsent_bytes(), 0u);
  uint64_t next = 1;
  for (int turn = 0; turn < 100000 && next <= kFrames; ++turn) {
    auto got = receive(*server_);
    ASSERT_TRUE(got) << got.error().message;
    for (const Frame& frame : *got) EXPECT_EQ(frame.header.seq, next++);
    got->clear();  // releases their memory
    server_->flush();
    ASSERT_TRUE(receive(*worker_));
  }
  EXPECT_EQ(next, kFrames + 1);
  EXPECT_EQ(worker_->unsent_bytes(), 0u);
}

TEST_F(ShmLinkTest, LentMemoryIsNotCopied) {
  connect();
  Buffer lent = worker_lent_.lend(1 << 20).value();
  Frame frame;
  frame.header.type = FrameType::kPush;
  frame.values = std::make_shared<const Buffer>(std::span(lent.data() + 4096, 65536), nullptr);
  std::memset(lent.data() + 4096, 1, 65536);
  worker_->send(frame);
  const auto got = receive(*server_);
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_EQ(got->size(), 1u);
  EXPECT_EQ(got->front().value_bytes()[100], std::byte{1});
  lent.data()[4096 + 100] = std::byte{2};
  EXPECT_EQ(got->front().value_bytes()[100], std::byte{2}) << "it is the very memory";
  EXPECT_TRUE(got->front().values->is_peers());
}

TEST_F(ShmLinkTest, NobodySleepsWhileThereIsSomethingToTake) {
  connect();
  EXPECT_TRUE(server_->prepare_sleep());
  worker_->send(frame_of(1, 0, 0));
  uint64_t rings = 0;
  EXPECT_EQ(read(server_->bell(), &rings, sizeof rings), static_cast<ssize_t>(sizeof rings)) << "it was asleep";
  EXPECT_FALSE(server_->prepare_sleep());
  EXPECT_TRUE(server_->has_news());
  ASSERT_TRUE(receive(*server_));
  EXPECT_TRUE(server_->prepare_sleep());
  worker_->send(frame_of(2, 0, 0));
  worker_->send(frame_of(3, 0, 0));
  EXPECT_EQ(read(server_->bell(), &rings, sizeof rings), static_cast<ssize_t>(sizeof rings));
  EXPECT_EQ(rings, 1u) << "once is enough";
}

TEST_F(ShmLinkTest, StrangersMaySendOnlySmallPayloads) {
  connect();
  worker_->send(frame_of(1, 0, kPayloadBytesStranger + 4));
  const auto got = receive(*server_, kPayloadBytesStranger);
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message, HasSubstr("payload of"));
}

TEST_F(ShmLinkTest, AnEndedPeerIsSeenAfterItsLastFrame) {
  connect();
  worker_->send(frame_of(7, 0, 100000));
  worker_.reset();
  worker_socket_ = {};
  const auto got = receive(*server_);
  ASSERT_TRUE(got);
  ASSERT_EQ(got->size(), 1u);
  EXPECT_EQ(all_bytes(got->front()), all_bytes(frame_of(7, 0, 100000))) << "its memory outlives it";
  EXPECT_EQ(server_->exchange().error().message, "closed by the peer");
}

// What a hostile peer hands over instead of a good segment.
class HostileSegment : public testing::Test {
 protected:
  Result<bool> hand_over(int memory, uint64_t size) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    const Fd here(ends[0]);
    const Fd there(ends[1]);
    const LentMemory lent;
    const auto link = ShmLink::make(here.get(), false, lent).value();
    const int fds[] = {memory, there.get()};
    TRY(send_handover(there.get(), {ShmHandover::kHello, 0, size}, fds));
    return link->exchange();
  }
};

TEST_F(HostileSegment, MemoryThatCouldBeCutShortIsRefused) {
  const Fd memory(memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(memory.get(), 1 << 20), 0);
  const auto taken = hand_over(memory.get(), 1 << 20);
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message, HasSubstr("can change its size"));
}

TEST_F(HostileSegment, MemorySmallerThanItSaysIsRefused) {
  const auto small = ShmSegment::make(1 << 20).value();
  EXPECT_FALSE(hand_over(small->fd(), 2 << 20));
  EXPECT_FALSE(hand_over(small->fd(), 4096)) << "no room for slots";
  EXPECT_FALSE(hand_over(small->fd(), UINT64_MAX));
  EXPECT_FALSE(hand_over(STDIN_FILENO, 1 << 20));
}

}  // namespace
}  // namespace pscloud

#include "net/shm/link.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

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

// How many pieces of shared memory this process has mapped.
size_t mapped_segments() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("memfd:pscloud") != std::string::npos;
  return count;
}

TEST_F(ShmLinkTest, LentMemoryThatIsTakenBackIsGoneAtTheOtherSideToo) {
  connect();
  const size_t before = mapped_segments();
  for (int i = 0; i < 5; ++i) {
    auto lent = std::make_shared<const Buffer>(worker_lent_.lend(1 << 20).value());
    worker_->send({.header = {.type = FrameType::kPush}, .payload = nullptr, .values = std::exchange(lent, nullptr)});
    auto got = receive(*server_);
    ASSERT_TRUE(got && got->size() == 1);
    EXPECT_EQ(mapped_segments(), before + 2) << "at both ends";
    EXPECT_TRUE(worker_->prepare_sleep());
    got->clear();
    server_->flush();
    ASSERT_TRUE(receive(*worker_));
    EXPECT_EQ(mapped_segments(), before + 1) << "taken back, and the other side does not know yet";
    EXPECT_TRUE(worker_->prepare_sleep());
    ASSERT_TRUE(receive(*server_));
    EXPECT_EQ(mapped_segments(), before);
  }
}

TEST_F(ShmLinkTest, WhatIsSentLaterLeavesRoomForWhatIsSentNow) {
  connect();
  std::vector<SharedBuffer> values;
  while (auto buffer = worker_->allocate(1 << 20)) {
    values.push_back(std::make_shared<const Buffer>(*std::move(buffer)));
  }
  EXPECT_GT(values.size(), 40u);
  worker_->send(frame_of(1, kPayloadBytesMax, 0));
  EXPECT_TRUE(worker_->idle()) << "the largest frame had no room";
}

TEST_F(ShmLinkTest, ACopyIsNotTakenForTheRowsThemselves) {
  connect();
  std::vector<SharedBuffer> tables;
  const auto show = [&] {
    tables.push_back(std::make_shared<const Buffer>(server_lent_.lend(4096).value()));
    server_->send({.header = {.type = FrameType::kReply, .flags = kFlagInPlace}, .values = tables.back()});
    const auto got = receive(*worker_);
    EXPECT_TRUE(got && got->size() == 1);
    return got->front();
  };
  for (int i = 0; i < 1024; ++i) ASSERT_EQ(show().header.flags, kFlagInPlace);
  const Frame copied = show();  // one more than is lent at one time
  EXPECT_EQ(copied.header.flags, 0);
  EXPECT_EQ(copied.value_bytes().size(), 4096u);
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

TEST_F(ShmLinkTest, TheLastFrameOfAnEndedPeerMayLieInMemoryItHasJustLent) {
  connect();
  auto lent = std::make_shared<const Buffer>(worker_lent_.lend(1 << 20).value());
  worker_->send({.header = {.type = FrameType::kPush}, .payload = nullptr, .values = lent});
  worker_.reset();
  worker_socket_ = {};
  const auto got = receive(*server_);
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_EQ(got->size(), 1u);
  EXPECT_EQ(got->front().value_bytes().size(), size_t{1} << 20);
}

// A peer whose slots the test writes.
class HostilePeer : public testing::Test {
 protected:
  static constexpr size_t kSegmentBytes = 1 << 20;

  HostilePeer() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    here_ = Fd(ends[0]);
    there_ = Fd(ends[1]);
    link_ = ShmLink::make(here_.get(), false, lent_).value();
    memory_ = ShmSegment::make(kSegmentBytes).value();
    const int fds[] = {memory_->fd(), there_.get()};
    EXPECT_TRUE(send_handover(there_.get(), {ShmHandover::kHello, 0, kSegmentBytes}, fds));
    EXPECT_TRUE(link_->exchange().value());
  }
  Result<bool> lend(uint32_t number, const ShmSegment& memory) { return lend(number, memory, memory.size()); }
  Result<bool> lend(uint32_t number, const ShmSegment& memory, uint64_t said_size) {
    const int fd = memory.fd();
    TRY(send_handover(there_.get(), {ShmHandover::kSegment, number, said_size}, {&fd, 1}));
    return link_->exchange();
  }
  Result<> slot(const ShmSlot& slot) {
    std::memcpy(memory_->data() + 4096 + sent_ * sizeof slot, &slot, sizeof slot);
    reinterpret_cast<ShmLink::Control*>(memory_->data())->sent.store(++sent_);
    return link_->receive(kPayloadBytesMax, pool_, [&](Frame frame) {
      frames_.push_back(std::move(frame));
      return true;
    });
  }
  Result<> gone(uint32_t number) {
    ShmSlot slot_of;
    slot_of.kind = ShmSlot::kGone;
    slot_of.payload.segment = number;
    return slot(slot_of);
  }

  BufferPool pool_{0};
  const LentMemory lent_;
  Fd here_;
  Fd there_;
  std::unique_ptr<ShmLink> link_;
  std::shared_ptr<ShmSegment> memory_;
  uint32_t sent_ = 0;
  std::vector<Frame> frames_;
};

TEST_F(HostilePeer, ASlotIsReadAsItsPageSays) {
  // docs/shared-memory.md: a frame of 8 bytes in its slot, at the offsets given there.
  std::array<std::byte, 256> bytes{};
  const auto put = [&](size_t offset, uint32_t number) { std::memcpy(bytes.data() + offset, &number, sizeof number); };
  put(0, 1);
  put(4, 8);
  const HeaderBytes header =
      encode_header({.header = {.type = FrameType::kPull, .seq = 9}, .payload = std::make_shared<Buffer>(8)}, false);
  std::memcpy(bytes.data() + 40, header.data(), header.size());
  std::memcpy(bytes.data() + 104, "8 bytes!", 8);
  std::memcpy(memory_->data() + 4096, bytes.data(), bytes.size());
  const uint32_t sent = 1;
  std::memcpy(memory_->data(), &sent, sizeof sent);
  ASSERT_TRUE(link_->receive(kPayloadBytesMax, pool_, [&](Frame frame) {
    frames_.push_back(std::move(frame));
    return true;
  }));
  ASSERT_EQ(frames_.size(), 1u);
  EXPECT_EQ(frames_[0].header.seq, 9u);
  EXPECT_EQ(std::memcmp(frames_[0].bytes().data(), "8 bytes!", 8), 0);
  static_assert(offsetof(ShmLink::Control, taken) == 64 && offsetof(ShmLink::Control, sleep) == 128 &&
                offsetof(ShmLink::Control, wants_room) == 132);
  static_assert(offsetof(ShmSlot, payload) == 8 && offsetof(ShmSlot, values) == 24 && offsetof(ShmPiece, size) == 4 &&
                offsetof(ShmPiece, offset) == 8);
}

TEST_F(HostilePeer, AHandoverIsReadAsItsPageSays) {
  const auto memory = ShmSegment::make(4096).value();
  const int fd = memory->fd();
  ASSERT_TRUE(send_handover(here_.get(), {ShmHandover::kSegment, 5, 4096}, {&fd, 1}));
  std::array<char, 64> text{};
  ASSERT_EQ(read(there_.get(), text.data(), text.size()), 24) << "its hello";
  ASSERT_EQ(read(there_.get(), text.data(), text.size()), 24);
  EXPECT_EQ(std::string(text.data(), 24), std::string("PSCLSHM1\2\0\0\0\5\0\0\0\0\x10\0\0\0\0\0\0", 24));
}

TEST_F(HostilePeer, MemoryThatIsTakenBackTooEarlyStaysWithItsFrames) {
  {
    const auto memory = ShmSegment::make(4096).value();
    std::memset(memory->data(), 7, 4096);
    ASSERT_TRUE(lend(1, *memory));
  }
  ShmSlot frame;
  frame.kind = ShmSlot::kFrame;
  frame.values = {.segment = 1, .size = 4096, .offset = 0};
  frame.header = encode_header({.header = {.type = FrameType::kPush}, .values = std::make_shared<Buffer>(4096)}, false);
  ASSERT_TRUE(slot(frame));
  ASSERT_EQ(frames_.size(), 1u);
  ASSERT_TRUE(gone(1));
  EXPECT_EQ(frames_[0].value_bytes()[4095], std::byte{7});
  frames_.clear();
  link_->flush();
  const auto after = slot(frame);
  ASSERT_FALSE(after);
  EXPECT_THAT(after.error().message, HasSubstr("not known"));
}

TEST_F(HostilePeer, MemoryThatWasNotLentCannotBeTakenBack) {
  EXPECT_FALSE(gone(5));
  EXPECT_FALSE(gone(0)) << "its slots";
}

TEST_F(HostilePeer, NobodyMayLendWithoutEnd) {
  const auto memory = ShmSegment::make(4096).value();
  // Beyond 1024 as many as may be gone by slots that are not read yet.
  constexpr uint32_t kMost = 1024 + kSlots;
  for (uint32_t number = 1; number <= kMost; ++number) ASSERT_TRUE(lend(number, *memory)) << number;
  const auto taken = lend(kMost + 1, *memory);
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message, HasSubstr("more than 1024"));
}

TEST_F(HostilePeer, NobodyMayUseUpTheAddressesOfTheOther) {
  const auto memory = ShmSegment::make(4096).value();
  ASSERT_TRUE(lend(1, *memory));
  const auto taken = lend(2, *memory, uint64_t{1} << 42);  // allowed if it were the only one
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message, HasSubstr("beside"));
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

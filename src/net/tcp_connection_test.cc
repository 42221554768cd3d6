#include "net/tcp_connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>

namespace pscloud {
namespace {

// A peer that always has another frame for us and takes all that we send: its socket is never dry, nor ever full.
class EndlessStream final : public Stream {
 public:
  EndlessStream(size_t& read, size_t& written) : read_(read), written_(written) {}

  Progress handshake() override { return {Progress::kDone}; }
  Progress read(std::span<const iovec> room) override {
    size_t filled = 0;
    for (; filled + frame_.size() <= room.front().iov_len; filled += frame_.size()) {
      std::memcpy(static_cast<std::byte*>(room.front().iov_base) + filled, frame_.data(), frame_.size());
    }
    read_ += filled;
    return {Progress::kDone, filled};
  }
  Progress write(std::span<const iovec> data) override {
    size_t bytes = 0;
    for (const iovec& part : data) bytes += part.iov_len;
    written_ += bytes;
    return {Progress::kDone, bytes};
  }
  void end_writing() override {}
  const Error& error() const override { return error_; }
  void identify(Peer&) const override {}

 private:
  const HeaderBytes frame_ = encode_header({}, false);
  size_t& read_;
  size_t& written_;
  Error error_{};
};

class FakeOwner final : public TcpConnectionOwner {
 public:
  FakeOwner() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    other_end_ = Fd(ends[1]);
    connection_ = std::make_unique<TcpConnection>(*this, 1, "peer", Fd(ends[0]), false);
  }

  Reactor& reactor() override { return *reactor_; }
  const TcpOptions& options() const override { return options_; }
  std::span<std::byte> scratch() override { return scratch_.span(); }
  TcpConnection* find(LaneId) override { return connection_.get(); }
  std::unique_ptr<Stream> make_stream(const TcpConnection&, int) override {
    return std::make_unique<EndlessStream>(read_, written_);
  }
  const LentMemory& lent() const override { return lent_; }
  BufferPool& pool() override { return pool_; }
  void connection_open(TcpConnection&, const Peer&) override {}
  void connection_known(TcpConnection&) override {}
  void connection_frame(TcpConnection&, Frame) override { ++frames_; }
  Buffer connection_buffer(TcpConnection&, const FrameHeader& header) override { return Buffer(header.payload_bytes); }
  void connection_gone(TcpConnection&) override { connection_.reset(); }

  const std::unique_ptr<Reactor> reactor_ = Reactor::make().value();
  const TcpOptions options_{.insecure = true};
  Buffer scratch_{64 << 10};
  LentMemory lent_;
  BufferPool pool_{0};
  size_t read_ = 0;
  size_t written_ = 0;
  size_t frames_ = 0;
  Fd other_end_;
  std::unique_ptr<TcpConnection> connection_;
};

TEST(TcpConnection, GivesWayToOthersHoweverMuchThereIsToRead) {
  FakeOwner owner;
  owner.connection_->start();
  while (owner.read_ < 12 << 20) {
    const size_t before = owner.read_;
    ASSERT_TRUE(owner.reactor_->turn()) << "it has stopped reading";
    EXPECT_LE(owner.read_ - before, (4 << 20) + owner.scratch_.size());
    EXPECT_EQ(owner.frames_, owner.read_ / kFrameHeaderBytes);
  }
}

TEST(TcpConnection, GivesWayToOthersHoweverMuchThereIsToSend) {
  FakeOwner owner;
  const auto payload = std::make_shared<const Buffer>(1 << 20);
  // Queued before it opens; each sendmsg takes 47 of them, which is the end of the turn.
  for (int i = 0; i < 100; ++i) owner.connection_->send({.header = {}, .payload = payload});
  owner.connection_->start();
  EXPECT_EQ(owner.written_, 47 * ((1 << 20) + kFrameHeaderBytes));
  EXPECT_EQ(owner.connection_->unsent_bytes(), 53 * ((1 << 20) + kFrameHeaderBytes));
  while (owner.connection_->unsent_bytes() > 0) ASSERT_TRUE(owner.reactor_->turn());
  EXPECT_EQ(owner.written_, 100 * ((1 << 20) + kFrameHeaderBytes));
}

}  // namespace
}  // namespace pscloud

// What is special to TCP: strangers, broken bytes, limits. transport_test.cc has what holds for every transport.

#include "net/tcp.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>  // NOLINT: kill() is POSIX
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "net/address.h"
#include "net/frame.h"
#include "net/socket.h"
#include "net/test_node.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

std::unique_ptr<LoopTransport> make_plain(TcpOptions options = {}) {
  options.insecure = true;
  return make_tcp_transport(options, system_clock).value();
}

// A peer that may send any bytes, and waits for what it does.
class RawPeer {
 public:
  explicit RawPeer(const std::string& address) {
    const Endpoint endpoint = resolve(parse_address(address).value(), false).value().front();
    fd_ = Fd(socket(endpoint.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval patience{.tv_sec = 30, .tv_usec = 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    EXPECT_EQ(connect(fd_.get(), endpoint.get(), endpoint.size), 0);
  }
  // False if the other side does not listen any more.
  bool send(Bytes bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0) return false;
      bytes = bytes.subspan(static_cast<size_t>(sent));
    }
    return true;
  }
  // True when the other side has closed.
  bool wait_closed() {
    char bytes[4096];
    while (true) {
      const ssize_t got = recv(fd_.get(), bytes, sizeof bytes, 0);
      if (got == 0) return true;
      if (got < 0) return errno == ECONNRESET;
    }
  }
  // Ends without a goodbye, as the kernel does for a process that is killed with bytes unread.
  void reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    fd_ = {};
  }
  void end() { fd_ = {}; }

 private:
  Fd fd_;
};

std::vector<std::byte> wire(const Frame& frame) {
  const HeaderBytes header = encode_header(frame, true);
  std::vector<std::byte> bytes(frame.size());
  std::copy(header.begin(), header.end(), bytes.begin());
  std::copy(frame.bytes().begin(), frame.bytes().end(), bytes.begin() + kFrameHeaderBytes);
  return bytes;
}

Frame frame_with(size_t payload_bytes) {
  return {.header = {.type = FrameType::kPush},
          .payload = std::make_shared<const Buffer>(Buffer::copy_of(std::vector<std::byte>(payload_bytes)))};
}

std::string close_message(TestNode& server, LaneId lane) { return server.wait_closed(lane).message; }

TEST(Tcp, ARefusedConnectionNamesTheAddress) {
  TestNode node(make_plain());
  std::string address;
  {
    TestNode gone(make_plain());
    address = gone.listen("127.0.0.1:0").value();
  }
  const Error why = node.wait_closed(node.connect(address));
  EXPECT_EQ(why.code, Code::kUnavailable);
  EXPECT_EQ(why.message, address + ": connection refused");
}

TEST(Tcp, AnotherUsersSocketIsNotTakenForAServers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  const std::string name = fmt::format("pscloud-test-{}", getpid());
  int ready[2];
  ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
  const pid_t other = fork();
  if (other == 0) {
    const Endpoint endpoint = unix_endpoint(name);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    const bool listens = setuid(65534) == 0 && bind(fd, endpoint.get(), endpoint.size) == 0 && listen(fd, 1) == 0;
    (void)!write(ready[1], listens ? "y" : "n", 1);
    pause();
    _exit(0);
  }
  char listens = 0;
  ASSERT_EQ(read(ready[0], &listens, 1), 1);
  ASSERT_EQ(listens, 'y');
  TestNode worker(make_plain());
  const Error why = worker.wait_closed(worker.connect("unix:" + name));
  EXPECT_EQ(why.code, Code::kUnavailable);
  EXPECT_THAT(why.message, HasSubstr("another user listens there"));
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST(Tcp, NamesAreLookedUp) {
  TestNode server(make_plain());
  TestNode worker(make_plain());
  const std::string address = server.listen("localhost:0").value();
  EXPECT_THAT(address, testing::StartsWith("localhost:"));
  EXPECT_TRUE(worker.wait_open(worker.connect(address)));
  const Error why = worker.wait_closed(worker.connect("no-such-host.invalid:1"));
  EXPECT_EQ(why.code, Code::kUnavailable);
  EXPECT_THAT(why.message, HasSubstr("no-such-host.invalid:1: cannot find the host"));
}

TEST(Tcp, ListensAtANameOfItsMachineThatNobodyKnowsYet) {
  std::string own(256, '\0');
  ASSERT_EQ(gethostname(own.data(), own.size() - 1), 0);
  own.resize(own.find('\0'));
  const auto machine = resolve({own, 1}, true);
  const auto listening = resolve({own + ".no-such-service.invalid", 1}, true);
  // A machine that knows itself by loopback alone, as many do, cannot be reached there.
  if (machine && !is_loopback(machine->front().host())) {
    ASSERT_TRUE(listening) << listening.error().message;
    EXPECT_EQ(listening->front().text(), machine->front().text());
  } else {
    EXPECT_THAT(listening.error().message, HasSubstr(own + ".no-such-service.invalid:1: cannot find the host"));
  }
  EXPECT_FALSE(resolve({own + ".no-such-service.invalid", 1}, false));
  EXPECT_FALSE(resolve({"x" + own + ".no-such-service.invalid", 1}, true));
}

TEST(Tcp, AddressesThatAreNoneAreRefused) {
  TestNode node(make_plain());
  EXPECT_EQ(node.wait_closed(node.connect("nonsense")).code, Code::kInvalid);
  EXPECT_EQ(node.listen("nonsense").error().code, Code::kInvalid);
}

TEST(Tcp, PlaintextStaysOnPrivateNetworks) {
  TestNode node(make_plain());
  const Error why = node.wait_closed(node.connect("192.0.2.1:4000"));  // RFC 5737: for documentation, nobody's
  EXPECT_EQ(why.code, Code::kInvalid);
  EXPECT_THAT(why.message, HasSubstr("plaintext is only for loopback and private addresses, not 192.0.2.1"));
  const auto listened = node.listen("192.0.2.1:0");
  ASSERT_FALSE(listened);
  EXPECT_THAT(listened.error().message, HasSubstr("plaintext is only for"));
}

TEST(Tcp, OptionsSayWhatToDo) {
  const auto why = [](const TcpOptions& options) { return make_tcp_transport(options, system_clock).error().message; };
  EXPECT_THAT(why({}), HasSubstr("`pscloud ca` makes one"));
  EXPECT_THAT(why({.tls_dir = "certs", .insecure = true}), HasSubstr("exclude each other"));
}

TEST(Tcp, APeerThatDiesClosesItsLane) {
  TestNode server(make_plain());
  const std::string address = server.listen("127.0.0.1:0").value();
  RawPeer ends(address);
  const LaneId first = server.wait_lane(0);
  ends.end();
  EXPECT_THAT(close_message(server, first), HasSubstr("closed by the peer"));

  RawPeer dies(address);
  const LaneId second = server.wait_lane(1);
  dies.reset();
  EXPECT_THAT(close_message(server, second), HasSubstr("connection reset by peer"));

  RawPeer stumbles(address);
  const LaneId third = server.wait_lane(2);
  stumbles.send(Bytes(wire(frame_with(1000))).first(500));
  stumbles.end();
  EXPECT_THAT(close_message(server, third), HasSubstr("in the middle of a frame"));
}

TEST(Tcp, FramesMayComeByteByByte) {
  TestNode server(make_plain());
  RawPeer peer(server.listen("127.0.0.1:0").value());
  const LaneId lane = server.wait_lane(0);
  for (int i = 0; i < 3; ++i) {
    for (const std::byte byte : wire(frame_with(20))) ASSERT_TRUE(peer.send(std::span(&byte, 1)));
  }
  EXPECT_EQ(server.wait_frames(lane, 3).size(), 3u);
}

TEST(Tcp, GarbageClosesTheLaneWithALine) {
  testing::internal::CaptureStderr();
  {
    TestNode server(make_plain());
    RawPeer peer(server.listen("127.0.0.1:0").value());
    peer.send(bytes_of("GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: somebody who is lost\r\n\r\n"));
    EXPECT_TRUE(peer.wait_closed());
    EXPECT_EQ(server.wait_closed(server.wait_lane(0)).code, Code::kCorrupt);
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::ContainsRegex("closed the connection: 127.0.0.1:[0-9]+: not a pscloud frame"));
}

TEST(Tcp, AChangedPayloadClosesTheLane) {
  TestNode server(make_plain());
  RawPeer peer(server.listen("127.0.0.1:0").value());
  auto bytes = wire(frame_with(100));
  bytes.back() ^= std::byte{1};
  peer.send(bytes);
  EXPECT_THAT(close_message(server, server.wait_lane(0)),
              HasSubstr("payload of a push frame (100 bytes) does not have"));
  EXPECT_TRUE(server.seen().frames.empty());
}

TEST(Tcp, AStormOfRandomBytesDoesNoHarm) {
  testing::internal::CaptureStderr();
  {
    TestNode server(make_plain());
    const std::string address = server.listen("127.0.0.1:0").value();
    rusage before;
    getrusage(RUSAGE_SELF, &before);
    Random random(5);
    for (int i = 0; i < 300; ++i) {
      std::vector<std::byte> bytes(random.below(100000));
      for (auto& byte : bytes) byte = static_cast<std::byte>(random.next());
      if (i % 3 == 0) {
        // A header that is right, for a payload that never comes.
        const HeaderBytes header = encode_header(frame_with(kPayloadBytesStranger), true);
        bytes.assign(header.begin(), header.end());
      } else if (i % 3 == 1) {
        // Whole frames, then one with a bit flipped.
        bytes = wire(frame_with(random.below(1000)));
        const auto bad = wire(frame_with(random.below(1000)));
        bytes.insert(bytes.end(), bad.begin(), bad.end());
        bytes[bytes.size() - 1 - random.below(bad.size())] ^= std::byte{4};
      }
      RawPeer peer(address);
      peer.send(bytes);
    }
    ASSERT_TRUE(server.wait([](const Seen& seen) { return seen.closed.size() == 300; }));
    rusage after;
    getrusage(RUSAGE_SELF, &after);
    EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 100 << 10) << "KiB";

    TestNode worker(make_plain());
    EXPECT_TRUE(worker.wait_open(worker.connect(address))) << "friends are still served";
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_LT(std::count(log.begin(), log.end(), '\n'), 150) << log;
  EXPECT_THAT(log, HasSubstr("more lines about refused or broken connections were left out"));
}

TEST(Tcp, WhoSaysNothingIsClosed) {
  TestNode server(make_plain({.first_frame_timeout = std::chrono::milliseconds(50)}));
  const std::string address = server.listen("127.0.0.1:0").value();
  RawPeer silent(address);
  EXPECT_TRUE(silent.wait_closed());
  const Error why = server.wait_closed(server.wait_lane(0));
  EXPECT_EQ(why.code, Code::kTimeout);
  EXPECT_THAT(why.message, HasSubstr("sent no frame within 0.05 s"));

  RawPeer slow(address);
  slow.send(Bytes(wire(frame_with(1000))).first(100));
  EXPECT_TRUE(slow.wait_closed());
}

TEST(Tcp, WhoHasSpokenMayBeSilent) {
  TestNode server(make_plain({.first_frame_timeout = std::chrono::milliseconds(50)}));
  const std::string address = server.listen("127.0.0.1:0").value();
  RawPeer friendly(address);
  friendly.send(wire(frame_with(1)));
  ASSERT_EQ(server.wait_frames(server.wait_lane(0), 1).size(), 1u);
  // One that came later is closed for its silence; by then the first one's time was over too.
  RawPeer silent(address);
  EXPECT_TRUE(silent.wait_closed());
  server.wait_closed(server.wait_lane(1));
  EXPECT_EQ(server.seen().closed.size(), 1u);
}

TEST(Tcp, StrangersAndLanesHaveALimit) {
  testing::internal::CaptureStderr();
  {
    TestNode server(make_plain({.handshakes_max = 2, .lanes_max = 3}));
    const std::string address = server.listen("127.0.0.1:0").value();
    RawPeer first(address);
    RawPeer second(address);
    RawPeer third(address);
    EXPECT_TRUE(third.wait_closed()) << "two strangers are here already";
    first.send(wire(frame_with(1)));
    second.send(wire(frame_with(1)));
    ASSERT_TRUE(server.wait([](const Seen& seen) { return seen.frames.size() == 2; }));
    RawPeer fourth(address);
    ASSERT_NE(server.wait_lane(2), 0u) << "the first two are strangers no more";
    RawPeer fifth(address);
    EXPECT_TRUE(fifth.wait_closed()) << "three lanes are open";
    fourth.end();
    server.wait_closed(server.wait_lane(2));
    RawPeer sixth(address);
    EXPECT_NE(server.wait_lane(3), 0u) << "one has left";
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("2 others have not shown who they are"));
  EXPECT_THAT(log, HasSubstr("3 are open, the limit"));
}

TEST(Tcp, ASmallLaneIsServedWhileALargeOneIsBusy) {
  TestNode server(make_plain(), {.echo = true, .keep = false});
  TestNode large(make_plain(), {.echo = true, .keep = false});
  TestNode small(make_plain());
  const std::string address = server.listen("127.0.0.1:0").value();
  // These go to and fro for ever, so that the small lane cannot simply wait for their end.
  const LaneId busy = large.connect(address);
  for (int i = 0; i < 8; ++i) large.send(busy, frame_with(4 << 20));
  ASSERT_TRUE(large.wait([](const Seen& seen) { return seen.frames_not_kept > 0; }));

  const LaneId quick = small.connect(address);
  for (size_t i = 1; i <= 10; ++i) {
    small.send(quick, frame_with(8));
    ASSERT_EQ(small.wait_frames(quick, i).size(), i);
  }
  const size_t so_far = large.seen().frames_not_kept;
  EXPECT_TRUE(large.wait([&](const Seen& seen) { return seen.frames_not_kept > so_far; })) << "it is busy still";
}

TEST(Tcp, APeerThatReadsNothingDoesNotHoldUpCloseOrStop) {
  TestNode server(make_plain({.linger = std::chrono::milliseconds(100)}));
  RawPeer deaf(server.listen("127.0.0.1:0").value());
  deaf.send(wire(frame_with(1)));
  const LaneId lane = server.wait_lane(0);
  for (int i = 0; i < 8; ++i) server.send(lane, frame_with(16 << 20));
  EXPECT_GT(server.call([&](LoopTransport& transport) { return transport.unsent_bytes(lane); }), 0u);
  const Time begin = system_clock.now();
  server.stop();
  EXPECT_LT(system_clock.now() - begin, std::chrono::seconds(20));
}

TEST(Tcp, ThePortIsFreeForANewNodeAtOnce) {
  std::string address = "127.0.0.1:0";
  for (int i = 0; i < 3; ++i) {
    TestNode server(make_plain());
    const auto listened = server.listen(address);
    ASSERT_TRUE(listened) << listened.error().message;
    address = *listened;
    TestNode worker(make_plain());
    ASSERT_TRUE(worker.wait_open(worker.connect(address)));
  }
}

}  // namespace
}  // namespace pscloud

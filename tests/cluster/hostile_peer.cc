// A peer that means harm, for the tests of whole clusters. Its frames have sound checksums, which random bytes have
// not: they come as far into a node as a stranger's or a bad worker's can.
//
//   hostile_peer stranger HOST:PORT SEED FRAMES    to any node that takes plaintext: random, damaged, cut short, and
//                                                  whole frames of every type with random fields and payloads
//   hostile_peer member HOST:PORT SEED FRAMES      joins at that scheduler as a worker, then asks its servers nonsense
//   hostile_peer last_clock HOST:PORT SEED FRAMES  joins, and ends the last clock there is at once
//   hostile_peer deaf HOST:PORT SEED FRAMES        asks that scheduler for what it will refuse, and reads no answer
//
// Prints how many frames it has sent.
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "engine/filter/filter.h"
#include "engine/message.h"
#include "net/frame.h"
#include "net/socket.h"

namespace pscloud {
namespace {

constexpr int kPatienceMs = 20000;
constexpr FrameType kRequests[] = {
    FrameType::kCreateTable, FrameType::kOpenTable, FrameType::kPush,     FrameType::kPull,       FrameType::kPushPull,
    FrameType::kClock,       FrameType::kOfferWork, FrameType::kTakeWork, FrameType::kFinishWork, FrameType::kTally,
    FrameType::kScan,        FrameType::kSetRows,   FrameType::kPauseWork};

// A plain TCP connection. Unless it is deaf, what the peer sends is dropped when our own bytes do not go out.
class Connection {
 public:
  static Result<Connection> to(const std::string& address, bool deaf = false) {
    const auto endpoints = TRY(resolve(TRY(parse_address(address)), false));
    Connection connection;
    connection.fd_ = TRY(begin_connect(endpoints.front()));
    if (!connection.ready(POLLOUT)) return timed_out("{} does not answer", address);
    TRY(end_connect(connection.fd_.get()));
    connection.deaf_ = deaf;
    return connection;
  }

  // False when the peer has had enough.
  bool send(Bytes bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        bytes = bytes.subspan(static_cast<size_t>(sent));
      } else if (errno != EAGAIN || !ready(deaf_ ? POLLOUT : POLLOUT | POLLIN) || (!deaf_ && !drop_input())) {
        return false;
      }
    }
    return true;
  }
  bool send(const Frame& frame) { return send(encode_header(frame, true)) && send(frame.bytes()); }

  // False when the peer has closed.
  bool drop_input() {
    std::byte room[4096];
    ssize_t got = 0;
    while ((got = recv(fd_.get(), room, sizeof room, 0)) > 0) {
    }
    return got < 0 && errno == EAGAIN;
  }

  Result<Frame> receive() {
    HeaderBytes header;
    TRY(fill(header));
    Frame frame{TRY(decode_header(header, kPayloadBytesMax)), nullptr};
    Buffer payload(frame.header.payload_bytes);
    TRY(fill(payload.span()));
    frame.payload = std::make_shared<const Buffer>(std::move(payload));
    return frame;
  }

 private:
  bool ready(short events) {
    pollfd one{fd_.get(), events, 0};
    return poll(&one, 1, kPatienceMs) > 0;
  }
  Result<> fill(std::span<std::byte> room) {
    while (!room.empty()) {
      const ssize_t got = recv(fd_.get(), room.data(), room.size(), 0);
      if (got > 0) {
        room = room.subspan(static_cast<size_t>(got));
      } else if (got == 0 || errno != EAGAIN || !ready(POLLIN)) {
        return unavailable("the peer closed the connection or is silent");
      }
    }
    return {};
  }

  Fd fd_;
  bool deaf_ = false;
};

SharedBuffer random_bytes(Random& random, size_t size) {
  Buffer buffer(size);
  for (std::byte& each : buffer.span()) each = static_cast<std::byte>(random.next());
  return std::make_shared<const Buffer>(std::move(buffer));
}

// Small numbers pass more checks than large ones, which in turn make overflows: some of both.
uint64_t random_number(Random& random) {
  switch (random.below(4)) {
    case 0: return random.below(4);
    case 1: return random.below(1000);
    case 2: return UINT64_MAX - random.below(4);
    default: return random.next() >> random.below(64);
  }
}

NodeInfo random_node(Random& random) {
  NodeInfo node;
  node.session = random_number(random);
  node.process = random_number(random);
  node.role = static_cast<Role>(1 + random.below(3));
  node.state = static_cast<NodeState>(1 + random.below(3));
  node.rank = static_cast<uint32_t>(random_number(random));
  node.owner = static_cast<uint32_t>(random_number(random));
  node.owners = static_cast<uint32_t>(random_number(random));
  node.address = std::string(random.below(kNameBytesMax), '\n');
  return node;
}

// A message that can be read, or a payload of parameters that almost can; often with a byte changed.
SharedBuffer random_payload(Random& random) {
  SharedBuffer sound;
  const std::string text(random.below(kTextBytesMax), '\x1b');
  View view{random_number(random), static_cast<Phase>(random.below(4)), text, {}};
  for (uint64_t i = random.below(20); i > 0; --i) view.nodes.push_back(random_node(random));
  switch (random.below(9)) {
    case 0: return nullptr;
    case 1: return random_bytes(random, random.below(2000));
    case 2: sound = encode(view); break;
    // Of another job: one of ours would be let in, since plaintext proves nothing.
    case 3: sound = encode(JoinMessage{"elsewhere", random_node(random), random_number(random), view}); break;
    case 4: sound = encode(HeartbeatMessage{random_number(random), text}); break;
    case 5: sound = encode(LeaveMessage{random.chance(0.5), text}); break;
    case 6: sound = encode(TextMessage{text}); break;
    case 7: {
      TableSpec spec;
      spec.name = random.chance(0.5) ? "counter" : "large";
      spec.kind = static_cast<TableKind>(random.below(2));
      spec.width = static_cast<uint32_t>(random_number(random));
      spec.rows = random_number(random);
      sound = encode(spec);
      break;
    }
    default: {
      const std::vector<Key> keys = {random_number(random), random_number(random)};
      const std::vector<float> values = {static_cast<float>(random.uniform()), 1e38f};
      const auto kind = static_cast<FilterKind>(1 + random.below(8));
      auto payload = encode_payload(std::vector<FilterSpec>{{kind}}, keys, Floats(values), 2, {&random, nullptr});
      sound = payload ? payload->joined() : nullptr;
    }
  }
  if (!sound || sound->size() == 0 || random.chance(0.3)) return sound;
  Buffer damaged = Buffer::copy_of(sound->span());
  damaged.data()[random.below(damaged.size())] ^= static_cast<std::byte>(1 + random.below(255));
  return std::make_shared<const Buffer>(std::move(damaged));
}

Frame random_frame(Random& random) {
  Frame frame;
  do {
    frame.header.type = static_cast<FrameType>(random.below(80));
  } while (!is_known(frame.header.type));
  frame.header.flags = static_cast<uint16_t>(random.below(kFlagsKnown + 1));
  frame.header.session = random_number(random);
  frame.header.seq = random_number(random);
  frame.header.ack = random_number(random);
  frame.header.extra = random_number(random);
  frame.header.table = random.chance(0.7) ? table_id("counter") : static_cast<TableId>(random_number(random));
  frame.header.count = static_cast<uint32_t>(random_number(random));
  frame.header.clock = static_cast<uint32_t>(random_number(random));
  frame.payload = random_payload(random);
  return frame;
}

// One frame as a stranger sends it. False when the connection is of no more use.
bool send_strange(Connection& connection, Random& random) {
  const Frame frame = random_frame(random);
  HeaderBytes header = encode_header(frame, random.chance(0.5));
  switch (random.below(8)) {
    case 0: return connection.send(random_bytes(random, 1 + random.below(300))->span()) && false;
    case 1:  // cut short, in the header or in the payload
      connection.send(Bytes(header).first(1 + random.below(kFrameHeaderBytes - 1)));
      return false;
    case 2:
      connection.send(header);
      connection.send(frame.bytes().first(frame.bytes().size() / 2));
      return false;
    case 3:  // damaged, and found out by the checksum
      header[random.below(kFrameHeaderBytes)] ^= std::byte{1};
      return connection.send(header) && connection.send(frame.bytes());
    case 4: {  // any header at all that has its checksum, with a payload as long as it likes
      for (size_t i = 5; i < 60; ++i) header[i] = static_cast<std::byte>(random.next());
      const auto check = static_cast<uint32_t>(hash64(Bytes(header).first(60)));
      std::memcpy(header.data() + 60, &check, sizeof check);
      return connection.send(header) && connection.send(random_bytes(random, random.below(500))->span());
    }
    default: return connection.send(frame);
  }
}

Result<uint64_t> be_stranger(const std::string& address, Random& random, uint64_t frames) {
  uint64_t sent = 0;
  while (sent < frames) {
    auto connection = TRY(Connection::to(address));
    for (bool open = true; open && sent < frames; ++sent) open = send_strange(connection, random);
  }
  return sent;
}

Result<uint64_t> be_deaf(const std::string& address, Random& random, uint64_t frames) {
  uint64_t sent = 0;
  while (sent < frames) {
    auto connection = TRY(Connection::to(address, true));
    const Frame join{{.type = FrameType::kJoin}, encode(JoinMessage{"elsewhere", random_node(random), 0, {}})};
    for (bool open = true; open && sent < frames; ++sent) open = connection.send(join);
  }
  return sent;
}

struct Membership {
  Connection scheduler;
  uint64_t session;
  std::vector<std::pair<NodeInfo, Connection>> owners;  // who serve us
};

Result<Membership> join(const std::string& scheduler, Random& random) {
  Membership member{TRY(Connection::to(scheduler)), random.next() | 1, {}};
  JoinMessage join{"pscloud", {}, 0, {}};
  join.self.session = member.session;
  join.self.rank = UINT32_MAX;
  Frame frame{{.type = FrameType::kJoin, .session = member.session}, encode(join)};
  member.scheduler.send(frame);
  View view;
  while (view.find(member.session) == nullptr) {
    const Frame answer = TRY(member.scheduler.receive());
    if (answer.header.type == FrameType::kView) view = TRY(decode<View>(answer.bytes()));
  }
  for (const NodeInfo& node : view.nodes) {
    if (node.role != Role::kServer) continue;
    auto owner = TRY(Connection::to(node.address));
    owner.send(Frame{{.type = FrameType::kSync, .session = member.session, .seq = 1, .extra = node.session}, nullptr});
    while (TRY(owner.receive()).header.type != FrameType::kSyncReply) {
    }
    member.owners.emplace_back(node, std::move(owner));
  }
  return member;
}

Result<uint64_t> be_member(const std::string& scheduler, Random& random, uint64_t frames, bool last_clock) {
  auto member = TRY(join(scheduler, random));
  uint64_t sent = 0;
  for (uint64_t seq = 1; sent < frames; ++seq) {
    for (auto& [node, connection] : member.owners) {
      Frame frame = random_frame(random);
      frame.header.type = last_clock ? FrameType::kClock : kRequests[random.below(std::size(kRequests))];
      if (last_clock) frame.header.flags = 0;
      frame.header.session = member.session;
      // Never behind: what is repeated is only answered again. Mostly the next one, which is done at once.
      frame.header.seq = random.chance(0.1) ? seq + random.below(100) : seq;
      frame.header.ack = 0;  // so that it must keep what it said
      if (last_clock) frame.header.clock = UINT32_MAX;
      if (frame.header.type == FrameType::kPush && random.chance(0.5)) frame.header.count = 2;
      // If that was not taken, the stream must go on all the same; if it was, this repeats it.
      Frame simple{{.type = FrameType::kPull, .session = member.session, .seq = seq, .table = 1}, nullptr};
      if (!connection.send(frame) || !connection.send(simple) || !connection.drop_input())
        return unavailable("{} closed the connection after {} frames", node.name(), sent);
      sent += 2;
    }
  }
  return sent;
}

Result<uint64_t> run(const std::vector<std::string>& words) {
  if (words.size() != 4) return invalid("usage: hostile_peer stranger|member|last_clock|deaf HOST:PORT SEED FRAMES");
  Random random(std::stoull(words[2]));
  const uint64_t frames = std::stoull(words[3]);
  if (words[0] == "deaf") return be_deaf(words[1], random, frames);
  if (words[0] == "stranger") return be_stranger(words[1], random, frames);
  return be_member(words[1], random, frames, words[0] == "last_clock");
}

}  // namespace
}  // namespace pscloud

int main(int argc, char** argv) {
  const auto sent = pscloud::run({argv + 1, argv + argc});
  if (!sent) {
    fmt::print(stderr, "hostile_peer: {}\n", sent.error().message);
    return 1;
  }
  fmt::print("{}\n", *sent);
  return 0;
}

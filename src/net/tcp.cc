#include "net/tcp.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <list>
#include <optional>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/buffer_pool.h"
#include "base/check.h"
#include "base/random.h"
#include "net/address.h"
#include "net/log_limit.h"
#include "net/reactor.h"
#include "net/tcp_connection.h"
#include "net/tls.h"

namespace pscloud {
namespace {

constexpr std::string_view kLocal = "unix:";
constexpr size_t kScratchBytes = 64 << 10;
constexpr Duration kWakeMax = std::chrono::hours(1);               // a far time would overflow; waking early is allowed
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);  // when the system has no room for another socket

struct Listener {
  Fd socket;
  uint64_t watch = 0;
};

class TcpTransport final : public LoopTransport, private TcpConnectionOwner {
 public:
  TcpTransport(const TcpOptions& options, const Clock& clock, std::unique_ptr<TlsContext> tls,
               std::unique_ptr<Reactor> reactor)
      : options_(options), clock_(clock), tls_(std::move(tls)), reactor_(std::move(reactor)), log_(clock) {}
  ~TcpTransport() override { forget_lanes(); }

  Result<std::string> listen(const std::string& address) override {
    if (address.starts_with(kLocal)) return listen_local(address.substr(kLocal.size()));
    Address wanted = TRY(parse_address(address));
    const auto endpoints = TRY(resolve(wanted, true));
    // Everywhere is allowed too: each caller is looked at.
    const std::string host = endpoints.front().host();
    if (options_.insecure && !is_private(host) && host != "0.0.0.0" && host != "::") {
      return invalid(
          "{}: plaintext is only for loopback and private addresses; give the node certificates (tls_dir), or listen "
          "on a private address",
          address);
    }
    Fd fd = TRY(listen_on(endpoints.front()));
    wanted.port = parse_address(local_endpoint(fd.get()).text())->port;

    TRY(accept_at(std::move(fd)));
    return wanted.text();
  }

  Result<Buffer> lend(size_t size) override { return lent_.lend(size); }

  LaneId connect(const std::string& address, Role expected) override {
    const LaneId lane = ++last_lane_;
    auto& connection = add(std::make_unique<TcpConnection>(owner(), lane, address, expected));
    if (address.starts_with(kLocal)) {
      connection.dial({unix_endpoint(address.substr(kLocal.size()))});
      return lane;
    }
    auto parsed = parse_address(address);
    if (!parsed) {
      connection.fail(parsed.error());
    } else if (is_number(parsed->host)) {
      auto endpoints = resolve(*parsed, false);
      endpoints ? dial(connection, *std::move(endpoints)) : connection.fail(endpoints.error());
    } else {
      look_up(lane, *parsed);
    }
    return lane;
  }

  void send(LaneId lane, Frame frame) override {
    if (TcpConnection* connection = find(lane)) connection->send(std::move(frame));
  }

  uint64_t unsent_bytes(LaneId lane) const override {
    const auto found = lanes_.find(lane);
    return found == lanes_.end() ? 0 : found->second->unsent_bytes();
  }

  Buffer allocate(LaneId lane, size_t size) override {
    TcpConnection* connection = find(lane);
    if (connection != nullptr && connection->link() != nullptr) {
      if (auto buffer = connection->link()->allocate(size)) return *std::move(buffer);
    }
    return pool_.take(size);
  }

  bool shares_memory(LaneId lane) const override {
    const auto found = lanes_.find(lane);
    return found != lanes_.end() && found->second->link() != nullptr;
  }

  bool borrows(LaneId lane) const override {
    const auto found = lanes_.find(lane);
    return found != lanes_.end() && !found->second->is_local();
  }

  void trust(LaneId lane) override {
    if (TcpConnection* connection = find(lane)) connection->trust();
  }

  void close(LaneId lane) override {
    if (TcpConnection* connection = find(lane); connection && connection->close()) remove(*connection);
  }

  void wake_at(Time when) override {
    wake_ = when;
    arm_wake();
  }

  void start(LaneHandler& handler) override {
    CHECK(handler_ == nullptr, "a transport starts once");
    handler_ = &handler;
  }

  bool turn() override {
    if (ended_) return false;
    reactor_->turn();
    // By number: a frame may end any lane.
    for (size_t i = 0; i < local_lanes_.size(); ++i) {
      if (TcpConnection* connection = find(local_lanes_[i])) connection->link_turn();
    }
    if (ended_) forget_lanes();
    return !ended_;
  }

  Duration idle_time() override {
    if (reactor_->has_work()) return Duration(0);
    for (const LaneId lane : local_lanes_) {
      ShmLink* link = lanes_.at(lane)->link();
      if (link != nullptr && !link->prepare_sleep()) return Duration(0);
    }
    return kWakeMax;
  }
  bool has_news() const override {
    if (local_lanes_.empty()) return reactor_->has_work() || reactor_->wait(Duration(0));
    return std::ranges::any_of(local_lanes_, [&](LaneId lane) {
      ShmLink* link = lanes_.at(lane)->link();
      return link != nullptr && link->has_news();
    });
  }
  void wait(Duration at_most, bool interruptible) override { reactor_->wait(at_most, interruptible); }
  void interrupt() override { reactor_->interrupt(); }

  void post(std::function<void()> work) override {
    if (stopped_.load()) return;
    reactor_->post([this, work = std::move(work)] {
      if (!stopping_) work();
    });
  }

  void stop() override {
    if (stopped_.exchange(true)) return;
    reactor_->post([this] { begin_stop(); });
  }

  std::string_view name() const override { return options_.insecure ? "tcp" : "tls"; }

 private:
  // What connections need and tell.
  Reactor& reactor() override { return *reactor_; }
  const TcpOptions& options() const override { return options_; }
  std::span<std::byte> scratch() override { return scratch_.span(); }
  TcpConnection* find(LaneId lane) override {
    const auto found = lanes_.find(lane);
    return found == lanes_.end() ? nullptr : found->second.get();
  }
  std::unique_ptr<Stream> make_stream(const TcpConnection& connection, int fd) override {
    if (!tls_) return make_plain_stream(fd);
    return connection.accepted() ? tls_->accept(fd) : tls_->connect(fd, *connection.expected());
  }
  const LentMemory& lent() const override { return lent_; }
  BufferPool& pool() override { return pool_; }
  void connection_open(TcpConnection& connection, const Peer& peer) override {
    if (connection.link() != nullptr) local_lanes_.push_back(connection.lane());
    handler_->on_open(connection.lane(), peer);
  }
  void connection_known(TcpConnection&) override { --strangers_; }
  void connection_frame(TcpConnection& connection, Frame frame) override {
    handler_->on_frame(connection.lane(), std::move(frame));
  }
  Buffer connection_buffer(TcpConnection& connection, const FrameHeader& header) override {
    const auto place = handler_->place_for(connection.lane(), header);
    CHECK(place.empty() || place.size() == header.payload_bytes);
    return place.empty() ? pool_.take(header.payload_bytes) : Buffer(place, nullptr);
  }
  void connection_gone(TcpConnection& connection) override {
    const LaneId lane = connection.lane();
    const bool tell = !connection.closed_by_us() && (connection.was_open() || !connection.accepted());
    const Error why = connection.why();
    if (!connection.was_open() && connection.accepted()) {
      log_.warning("refused a connection from {}", why.message);
    } else if (why.code == Code::kCorrupt) {
      log_.warning("closed the connection: {}", why.message);
    }
    remove(connection);
    if (tell) handler_->on_close(lane, why);
  }

  TcpConnectionOwner& owner() { return *this; }

  Result<std::string> listen_local(std::string name) {
    if (name.empty()) {
      Random random = Random::from_system();
      name = fmt::format("pscloud-{:016x}{:016x}", random.next(), random.next());
    }
    const std::string address = std::string(kLocal) + name;
    TRY(accept_at(TRY(listen_on(unix_endpoint(name)).at(address))));
    return address;
  }

  Result<> accept_at(Fd fd) {
    auto listener = std::make_unique<Listener>(Listener{std::move(fd)});
    listener->watch = TRY(
        reactor_->watch(listener->socket.get(), [this, l = listener.get()](Reactor::Change) { accept_callers(*l); }));
    listeners_.push_back(std::move(listener));
    return {};
  }

  TcpConnection& add(std::unique_ptr<TcpConnection> connection) {
    const LaneId lane = connection->lane();
    return *lanes_.emplace(lane, std::move(connection)).first->second;
  }

  void remove(TcpConnection& connection) {
    if (connection.stranger()) --strangers_;
    std::erase(local_lanes_, connection.lane());
    lanes_.erase(connection.lane());
    if (stopping_ && lanes_.empty()) ended_ = true;
  }

  void forget_lanes() {
    local_lanes_.clear();
    lanes_.clear();
    close_listeners();
  }

  void close_listeners() {
    for (auto& listener : listeners_) reactor_->unwatch(listener->socket.get(), listener->watch);
    listeners_.clear();
  }

  static bool is_number(const std::string& host) {
    std::array<std::byte, sizeof(in6_addr)> ignored;
    return inet_pton(AF_INET, host.c_str(), ignored.data()) == 1 ||
           inet_pton(AF_INET6, host.c_str(), ignored.data()) == 1;
  }

  // The system's resolver blocks, so it is asked on a thread of its own.
  void look_up(LaneId lane, const Address& address) {
    std::erase_if(look_ups_, [](const LookUp& one) { return one.done->load(); });
    const auto done = std::make_shared<std::atomic<bool>>(false);
    const auto ask = [this, lane, address, done] {
      post([this, lane, found = resolve(address, false)] {
        TcpConnection* connection = find(lane);
        if (connection == nullptr) return;
        found ? dial(*connection, *found) : connection->fail(found.error());
      });
      done->store(true);
    };
    try {
      look_ups_.push_back({done, std::jthread(ask)});
    } catch (const std::system_error& e) {
      find(lane)->fail(unavailable("{}: cannot find the host: {}", address.text(), e.what()));
    }
  }

  void dial(TcpConnection& connection, std::vector<Endpoint> endpoints) {
    if (options_.insecure) {
      const std::string first = endpoints.empty() ? "" : endpoints.front().host();
      std::erase_if(endpoints, [](const Endpoint& endpoint) { return !is_private(endpoint.host()); });
      if (endpoints.empty()) {
        return connection.fail(invalid(
            "{}: plaintext is only for loopback and private addresses, not {}; give the nodes certificates (tls_dir)",
            connection.address(), first));
      }
    }
    connection.dial(std::move(endpoints));
  }

  void accept_callers(Listener& listener) {
    while (!stopping_) {
      Endpoint from{.size = sizeof(sockaddr_storage)};
      Fd fd(accept4(listener.socket.get(), reinterpret_cast<sockaddr*>(&from.storage), &from.size,
                    SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (fd) {
        accept(std::move(fd), from);
        continue;
      }
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      log_.warning("cannot accept connections: {}", errno_text(errno));
      // Those who wait cause no new edge: look again.
      reactor_->set_timer(std::chrono::steady_clock::now() + kAcceptPause, [this, l = &listener] {
        if (!stopping_) accept_callers(*l);
      });
      return;
    }
  }

  void accept(Fd fd, const Endpoint& from) {
    if (from.storage.ss_family == AF_UNIX && !same_user(fd.get())) {
      return log_.warning("refused a process of another user that asked for shared memory");
    }
    if (options_.insecure && !is_private(from.host())) {
      return log_.warning("refused a connection from {}: plaintext is only for private addresses", from.text());
    }
    if (lanes_.size() >= options_.lanes_max) {
      return log_.warning("refused a connection from {}: {} are open, the limit", from.text(), lanes_.size());
    }
    if (strangers_ >= options_.handshakes_max) {
      return log_.warning("refused a connection from {}: {} others have not shown who they are", from.text(),
                          strangers_);
    }
    const LaneId lane = ++last_lane_;
    ++strangers_;
    const bool local = from.storage.ss_family == AF_UNIX;
    add(std::make_unique<TcpConnection>(owner(), lane, from.text(), std::move(fd), local)).start();
  }

  // The timer is moved only to an earlier time: a node asks again after each message, mostly for later.
  void arm_wake() {
    const Duration ahead = std::clamp(wake_ - clock_.now(), Duration(0), kWakeMax);
    const auto when = std::chrono::steady_clock::now() + ahead;
    if (wake_timer_ && wake_timer_->first <= when) return;
    if (wake_timer_) reactor_->clear_timer(*wake_timer_);
    wake_timer_ = reactor_->set_timer(when, [this] {
      wake_timer_.reset();
      if (stopping_) return;
      if (clock_.now() < wake_) {
        if (wake_ != Time::never()) arm_wake();
        return;
      }
      wake_ = Time::never();
      handler_->on_wake();
    });
  }

  void begin_stop() {
    stopping_ = true;
    close_listeners();
    std::vector<LaneId> lanes;
    for (const auto& [lane, connection] : lanes_) lanes.push_back(lane);
    for (const LaneId lane : lanes) close(lane);
    if (lanes_.empty()) ended_ = true;  // else with the last one, when it has sent what it had or its time is over
  }

  const TcpOptions options_;
  const Clock& clock_;                     // borrowed
  const std::unique_ptr<TlsContext> tls_;  // null: plaintext
  std::atomic<bool> stopped_{false};

  // Touched in turns only, and before the first.
  const std::unique_ptr<Reactor> reactor_;
  LogLimit log_;
  LaneHandler* handler_ = nullptr;
  bool stopping_ = false;
  bool ended_ = false;
  Time wake_ = Time::never();
  std::optional<Reactor::TimerId> wake_timer_;
  Buffer scratch_{kScratchBytes};
  BufferPool pool_;
  LentMemory lent_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  LaneId last_lane_ = 0;
  size_t strangers_ = 0;
  std::unordered_map<LaneId, std::unique_ptr<TcpConnection>> lanes_;
  std::vector<LaneId> local_lanes_;  // those through shared memory

  struct LookUp {
    std::shared_ptr<std::atomic<bool>> done;
    std::jthread thread;
  };
  std::list<LookUp> look_ups_;  // last: their threads post to all the others
};

}  // namespace

Result<std::unique_ptr<LoopTransport>> make_tcp_transport(const TcpOptions& options, Clock& clock) {
  if (options.insecure && !options.tls_dir.empty()) {
    return invalid("insecure and tls_dir {} exclude each other: leave one of them out", options.tls_dir);
  }
  if (!options.insecure && options.tls_dir.empty()) {
    return invalid(
        "no certificates: give their folder (tls_dir; `pscloud ca` makes one), or ask for plaintext on a private "
        "network (insecure)");
  }
  std::unique_ptr<TlsContext> tls;
  if (!options.insecure) tls = TRY(TlsContext::load(options.tls_dir, options.tls_rekey_bytes));
  return std::make_unique<TcpTransport>(options, clock, std::move(tls), TRY(Reactor::make()));
}

}  // namespace pscloud

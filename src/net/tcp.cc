#include "net/tcp.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "net/address.h"
#include "net/asio.h"
#include "net/log_limit.h"
#include "net/tcp_connection.h"
#include "net/tls.h"

namespace pscloud {
namespace {

constexpr size_t kScratchBytes = 64 << 10;
constexpr Duration kWakeMax = std::chrono::hours(1);               // a far time would overflow; waking early is allowed
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);  // when the system has no room for another socket

// OpenSSL writes to the socket without MSG_NOSIGNAL. SIGPIPE then goes to the writing thread, so it is enough to block
// it there; the program around us keeps its own way with signals.
class SigpipeBlock {
 public:
  SigpipeBlock() {
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before_);
  }
  ~SigpipeBlock() {
    if (!was_pending_) {
      sigset_t pipe;
      sigemptyset(&pipe);
      sigaddset(&pipe, SIGPIPE);
      const timespec at_once{};
      sigtimedwait(&pipe, nullptr, &at_once);  // takes ours away, if there is one
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeBlock(const SigpipeBlock&) = delete;
  SigpipeBlock& operator=(const SigpipeBlock&) = delete;

 private:
  sigset_t before_;
  bool was_pending_ = false;
};

struct Listener {
  explicit Listener(asio::io_context& io) : socket(io), pause(io) {}
  asio::posix::stream_descriptor socket;
  asio::steady_timer pause;
};

class TcpTransport final : public LoopTransport, private TcpConnectionOwner {
 public:
  TcpTransport(const TcpOptions& options, const Clock& clock, std::unique_ptr<TlsContext> tls)
      : options_(options),
        clock_(clock),
        tls_(std::move(tls)),
        work_(io_.get_executor()),
        resolver_(io_),
        wake_timer_(io_),
        log_(clock) {}

  Result<std::string> listen(const std::string& address) override {
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

    auto listener = std::make_unique<Listener>(io_);
    asio::error_code error;
    listener->socket.assign(fd.get(), error);
    if (error) return unavailable("{}: {}", address, error.message());
    fd.release();
    wait_for_callers(*listener);
    listeners_.push_back(std::move(listener));
    return wanted.text();
  }

  LaneId connect(const std::string& address, Role expected) override {
    const LaneId lane = ++last_lane_;
    auto& connection = add(std::make_unique<TcpConnection>(owner(), lane, address, expected));
    auto parsed = parse_address(address);
    if (!parsed) {
      connection.fail(parsed.error());
    } else if (asio::error_code not_number; asio::ip::make_address(parsed->host, not_number), !not_number) {
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

  void run(LaneHandler& handler) override {
    CHECK(handler_ == nullptr, "a transport runs once");
    handler_ = &handler;
    const SigpipeBlock block;
    io_.run();
    lanes_.clear();
    listeners_.clear();
  }

  void post(std::function<void()> work) override {
    if (stopped_.load()) return;
    asio::post(io_, [this, work = std::move(work)] {
      if (!stopping_) work();
    });
  }

  void stop() override {
    if (stopped_.exchange(true)) return;
    asio::post(io_, [this] { begin_stop(); });
  }

  std::string_view name() const override { return options_.insecure ? "tcp" : "tls"; }

 private:
  // What connections need and tell.
  asio::io_context& io() override { return io_; }
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
  void connection_open(TcpConnection& connection, const Peer& peer) override {
    handler_->on_open(connection.lane(), peer);
  }
  void connection_known(TcpConnection&) override { --strangers_; }
  void connection_frame(TcpConnection& connection, Frame frame) override {
    handler_->on_frame(connection.lane(), std::move(frame));
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

  TcpConnection& add(std::unique_ptr<TcpConnection> connection) {
    const LaneId lane = connection->lane();
    return *lanes_.emplace(lane, std::move(connection)).first->second;
  }

  void remove(TcpConnection& connection) {
    if (connection.stranger()) --strangers_;
    lanes_.erase(connection.lane());
    if (stopping_ && lanes_.empty()) io_.stop();
  }

  void look_up(LaneId lane, const Address& address) {
    using Found = asio::ip::tcp::resolver::results_type;
    const auto done = [this, lane](const asio::error_code& error, const Found& found) {
      TcpConnection* connection = find(lane);
      if (connection == nullptr) return;
      if (error) {
        return connection->fail(unavailable("{}: cannot find the host: {}", connection->address(), error.message()));
      }
      std::vector<Endpoint> endpoints;
      for (const auto& entry : found) {
        const auto endpoint = entry.endpoint();
        endpoints.push_back({.size = static_cast<socklen_t>(endpoint.size())});
        std::memcpy(&endpoints.back().storage, endpoint.data(), endpoint.size());
      }
      dial(*connection, std::move(endpoints));
    };
    resolver_.async_resolve(address.host, std::to_string(address.port), done);
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

  void wait_for_callers(Listener& listener) {
    listener.socket.async_wait(asio::posix::descriptor_base::wait_read, [this, &listener](asio::error_code error) {
      if (!error) accept_callers(listener);
    });
  }

  void accept_callers(Listener& listener) {
    while (!stopping_) {
      Endpoint from{.size = sizeof(sockaddr_storage)};
      Fd fd(accept4(listener.socket.native_handle(), reinterpret_cast<sockaddr*>(&from.storage), &from.size,
                    SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (fd) {
        accept(std::move(fd), from);
        continue;
      }
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return wait_for_callers(listener);
      log_.warning("cannot accept connections: {}", errno_text(errno));
      listener.pause.expires_after(kAcceptPause);
      listener.pause.async_wait([this, &listener](asio::error_code error) {
        if (!error) wait_for_callers(listener);
      });
      return;
    }
  }

  void accept(Fd fd, const Endpoint& from) {
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
    add(std::make_unique<TcpConnection>(owner(), lane, from.text(), std::move(fd))).start();
  }

  // The timer is moved only to an earlier time: a node asks again after each message, mostly for later.
  void arm_wake() {
    const Duration ahead = std::clamp(wake_ - clock_.now(), Duration(0), kWakeMax);
    const auto when = asio::steady_timer::clock_type::now() + ahead;
    if (wake_armed_ && wake_timer_.expiry() <= when) return;
    wake_armed_ = true;
    wake_timer_.expires_at(when);
    wake_timer_.async_wait([this](asio::error_code error) {
      if (error || stopping_) return;  // moved to another time
      wake_armed_ = false;
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
    asio::error_code ignored;
    for (auto& listener : listeners_) {
      listener->socket.close(ignored);
      listener->pause.cancel();
    }
    resolver_.cancel();
    wake_timer_.cancel();
    std::vector<LaneId> lanes;
    for (const auto& [lane, connection] : lanes_) lanes.push_back(lane);
    for (const LaneId lane : lanes) close(lane);
    if (lanes_.empty()) io_.stop();  // else the last one, when it has sent what it had or its time is over
  }

  const TcpOptions options_;
  const Clock& clock_;                     // borrowed
  const std::unique_ptr<TlsContext> tls_;  // null: plaintext
  std::atomic<bool> stopped_{false};

  // Touched by the loop thread only, and before run() by the thread that made this.
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::ip::tcp::resolver resolver_;
  asio::steady_timer wake_timer_;
  LogLimit log_;
  LaneHandler* handler_ = nullptr;
  bool stopping_ = false;
  Time wake_ = Time::never();
  bool wake_armed_ = false;
  Buffer scratch_{kScratchBytes};
  std::vector<std::unique_ptr<Listener>> listeners_;
  LaneId last_lane_ = 0;
  size_t strangers_ = 0;
  std::unordered_map<LaneId, std::unique_ptr<TcpConnection>> lanes_;
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
  return std::make_unique<TcpTransport>(options, clock, std::move(tls));
}

}  // namespace pscloud

#include "net/tls_tunnel.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "base/check.h"
#include "net/openssl_reason.h"
#include "net/sigpipe.h"
#include "net/socket.h"

namespace pscloud {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kToConnect{10};
constexpr size_t kLinesMax = 64;  // a browser has six
constexpr size_t kPiece = 16384;  // of one record

using SslPtr = std::unique_ptr<SSL, decltype(&SSL_free)>;

// What an operation that could not go on waits for; 0 if it never will.
short wanted(SSL* ssl, int result) {
  switch (SSL_get_error(ssl, result)) {
    case SSL_ERROR_WANT_READ: return POLLIN;
    case SSL_ERROR_WANT_WRITE: return POLLOUT;
    default: return 0;
  }
}

// False if the time is over, or `stop` rings.
bool wait_for(int fd, short events, int stop, steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now()).count();
  if (left <= 0) return false;
  pollfd polled[] = {{fd, events, 0}, {stop, POLLIN, 0}};
  const int ready = ::poll(polled, 2, static_cast<int>(left));
  return (ready > 0 || (ready < 0 && errno == EINTR)) && polled[1].revents == 0;
}

Result<Fd> connect_to(const Address& server, int stop, steady_clock::time_point deadline) {
  Error last = unavailable("{} has no address", server.text());
  for (const Endpoint& endpoint : TRY(resolve(server, false))) {
    auto connecting = begin_connect(endpoint);
    if (!connecting) {
      last = connecting.error();
      continue;
    }
    if (!wait_for(connecting->get(), POLLOUT, stop, deadline)) return timed_out("{} does not answer", server.text());
    const auto connected = end_connect(connecting->get());
    if (connected) return connecting;
    last = connected.error();
  }
  return last;
}

// Proves who the server is.
Result<SslPtr> shake_hands(const Fd& connection, SSL_CTX* context, const Address& server, int stop,
                           steady_clock::time_point deadline) {
  SslPtr ssl(SSL_new(context), SSL_free);
  CHECK(ssl != nullptr && SSL_set_fd(ssl.get(), connection.get()) == 1, "{}", openssl_reason());
  // A certificate has names or numbers, and only a name is told to the server.
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), server.host.c_str()) != 1) {
    CHECK(SSL_set1_host(ssl.get(), server.host.c_str()) == 1, "{}", openssl_reason());
    SSL_set_tlsext_host_name(ssl.get(), server.host.c_str());
  }
  while (true) {
    ERR_clear_error();
    const int result = SSL_connect(ssl.get());
    if (result == 1) return ssl;
    const short events = wanted(ssl.get(), result);
    if (events == 0) {
      const long verified = SSL_get_verify_result(ssl.get());
      return invalid("{}: {}", server.text(),
                     verified == X509_V_OK
                         ? "it does not speak TLS: " + openssl_reason()
                         : fmt::format("its certificate is refused: {}", X509_verify_cert_error_string(verified)));
    }
    if (!wait_for(connection.get(), events, stop, deadline)) return timed_out("{} does not answer", server.text());
  }
}

// Bytes on their way in one direction.
struct Piece {
  std::array<char, kPiece> bytes;
  size_t from = 0;
  size_t to = 0;

  bool empty() const { return from == to; }
  void fill(size_t size) {
    from = 0;
    to = size;
  }
};

// Both directions, until one end closes.
void pump(int here, SSL* ssl, int there, int stop) {
  Piece up;
  Piece down;
  while (true) {
    int from_here = 0;   // what to wait for, if nothing can be moved
    int from_there = 0;  // TLS may have to read before it can write
    bool moved = false;
    if (up.empty()) {
      const ssize_t got = ::recv(here, up.bytes.data(), kPiece, MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return;
      if (got > 0) up.fill(static_cast<size_t>(got));
      if (got < 0) from_here |= POLLIN;
    }
    if (!up.empty()) {
      ERR_clear_error();
      size_t sent = 0;
      const int result = SSL_write_ex(ssl, up.bytes.data() + up.from, up.to - up.from, &sent);
      up.from += sent;
      moved = result == 1;
      const short events = result == 1 ? 0 : wanted(ssl, result);
      if (result != 1 && events == 0) return;
      from_there |= events;
    }
    if (down.empty()) {
      ERR_clear_error();
      size_t got = 0;
      const int result = SSL_read_ex(ssl, down.bytes.data(), kPiece, &got);
      const short events = result == 1 ? 0 : wanted(ssl, result);
      if (result != 1 && events == 0) return;
      from_there |= events;
      if (result == 1) down.fill(got);
    }
    if (!down.empty()) {
      const ssize_t sent =
          ::send(here, down.bytes.data() + down.from, down.to - down.from, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return;
      if (sent < 0) from_here |= POLLOUT;
      if (sent > 0) {
        down.from += static_cast<size_t>(sent);
        moved = true;
      }
    }
    if (moved) continue;
    // Whose end is not waited for may have hung up, and would wake us again and again.
    pollfd polled[] = {{from_here != 0 ? here : -1, static_cast<short>(from_here), 0},
                       {from_there != 0 ? there : -1, static_cast<short>(from_there), 0},
                       {stop, POLLIN, 0}};
    ::poll(polled, 3, -1);
    if (polled[2].revents != 0) return;
  }
}

}  // namespace

class TlsTunnel::Line {
 public:
  Line(const TlsTunnel& tunnel, Fd connection)
      : thread_([this, &tunnel, here = std::move(connection)]() mutable {
          SigpipeBlock::for_thread();
          carry(tunnel, here);
          here = Fd();
          done_ = true;
        }) {}
  bool is_done() const { return done_; }

 private:
  static void carry(const TlsTunnel& tunnel, const Fd& here) {
    const auto deadline = steady_clock::now() + kToConnect;
    const int stop = tunnel.stop_.get();
    const auto there = connect_to(tunnel.server_, stop, deadline);
    if (!there) return;
    const auto ssl = shake_hands(*there, tunnel.context_, tunnel.server_, stop, deadline);
    if (!ssl) return;
    pump(here.get(), ssl->get(), there->get(), stop);
    ERR_clear_error();
    SSL_shutdown(ssl->get());
  }

  std::atomic<bool> done_ = false;
  std::jthread thread_;  // last: it uses the others
};

TlsTunnel::TlsTunnel(const Address& server, SSL_CTX* context, Fd stop)
    : server_(server), context_(context), stop_(std::move(stop)) {}

TlsTunnel::~TlsTunnel() {
  ring(stop_.get());
  {
    MutexLock lock(mutex_);
    lines_.clear();
  }
  SSL_CTX_free(context_);
}

Result<std::unique_ptr<TlsTunnel>> TlsTunnel::open(const Address& server, const std::string& ca_pem) {
  Fd stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop) return unavailable("cannot make an event: {}", errno_text(errno));
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  CHECK(context != nullptr, "{}", openssl_reason());
  std::unique_ptr<TlsTunnel> tunnel(new TlsTunnel(server, context, std::move(stop)));
  CHECK(SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1, "{}", openssl_reason());
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  if (ca_pem.empty()) {
    SSL_CTX_set_default_verify_paths(context);
  } else {
    const std::unique_ptr<BIO, decltype(&BIO_free)> text(
        BIO_new_mem_buf(ca_pem.data(), static_cast<int>(ca_pem.size())), BIO_free);
    bool any = false;
    while (X509* certificate = PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr)) {
      any = X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate) == 1;
      X509_free(certificate);
    }
    ERR_clear_error();  // the end of the text is one
    if (!any) return invalid("the authority of {} is no certificate", server.text());
  }
  const SigpipeBlock block;
  const auto deadline = steady_clock::now() + kToConnect;
  const Fd there = TRY(connect_to(server, tunnel->stop_.get(), deadline));
  TRY(shake_hands(there, context, server, tunnel->stop_.get(), deadline));
  return tunnel;
}

void TlsTunnel::carry(Fd connection) {
  MutexLock lock(mutex_);
  std::erase_if(lines_, [](const std::unique_ptr<Line>& line) { return line->is_done(); });
  if (lines_.size() < kLinesMax) lines_.push_back(std::make_unique<Line>(*this, std::move(connection)));
}

}  // namespace pscloud

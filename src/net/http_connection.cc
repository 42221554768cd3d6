#include "net/http_connection.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "net/openssl_reason.h"

namespace pscloud {
namespace {

// Of what the client still sends when it has its answer: closing earlier would take the answer from it.
constexpr size_t kDrainedBytesMax = 1 << 20;
constexpr Duration kDrainTime = std::chrono::milliseconds(500);

}  // namespace

Result<std::unique_ptr<HttpTls>> HttpTls::load(const std::string& certificate_file, const std::string& key_file) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  CHECK(context != nullptr, "{}", openssl_reason());
  std::unique_ptr<HttpTls> tls(new HttpTls(context));
  CHECK(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1, "{}", openssl_reason());
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (SSL_CTX_use_certificate_chain_file(context, certificate_file.c_str()) != 1) {
    return invalid("{} holds no certificate: {}", certificate_file, openssl_reason());
  }
  if (SSL_CTX_use_PrivateKey_file(context, key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    return invalid("{} holds no key of {}: {}", key_file, certificate_file, openssl_reason());
  }
  return tls;
}

HttpTls::~HttpTls() { SSL_CTX_free(context_); }

SSL* HttpTls::accept(int socket) const {
  SSL* ssl = SSL_new(context_);
  CHECK(ssl != nullptr && SSL_set_fd(ssl, socket) == 1, "{}", openssl_reason());
  SSL_set_accept_state(ssl);
  return ssl;
}

HttpConnection::HttpConnection(int socket, int stop_event, const HttpTls* tls, Duration time)
    : socket_(socket),
      stop_event_(stop_event),
      ssl_(tls != nullptr ? tls->accept(socket) : nullptr),
      deadline_(clock_.now() + time) {
  ::fcntl(socket_, F_SETFD, FD_CLOEXEC);
  ::fcntl(socket_, F_SETFL, ::fcntl(socket_, F_GETFL) | O_NONBLOCK);
}

HttpConnection::~HttpConnection() {
  end();
  SSL_free(ssl_);
  ::close(socket_);
}

void HttpConnection::end() {
  if (ssl_ != nullptr && SSL_is_init_finished(ssl_)) {
    ERR_clear_error();
    SSL_shutdown(ssl_);
  }
  ::shutdown(socket_, SHUT_WR);
  set_time(kDrainTime);
  for (size_t drained = 0; drained < kDrainedBytesMax && wait(POLLIN);) {
    const ssize_t count = ::recv(socket_, buffer_, sizeof buffer_, 0);
    if (count <= 0) break;
    drained += static_cast<size_t>(count);
  }
  ::shutdown(socket_, SHUT_RDWR);
}

bool HttpConnection::handshake() {
  if (ssl_ == nullptr) return true;
  while (true) {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_);
    if (result == 1) return true;
    if (!wait_for_tls(result)) return false;
  }
}

void HttpConnection::set_time(Duration time) {
  deadline_ = clock_.now() + time;
  renewal_ = Duration(0);
}

void HttpConnection::renew_by_writing(Duration time) {
  deadline_ = clock_.now() + time;
  renewal_ = time;
}

bool HttpConnection::wait(short events) const {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - clock_.now());
    pollfd files[] = {{socket_, events, 0}, {stop_event_, POLLIN, 0}};
    if (left.count() <= 0) return false;
    const int ready = ::poll(files, 2, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    return ready > 0 && files[1].revents == 0;
  }
}

bool HttpConnection::pause(Duration time) const {
  const Time until = clock_.now() + time;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock_.now());
    if (left.count() <= 0) return true;
    pollfd files[] = {{socket_, POLLRDHUP, 0}, {stop_event_, POLLIN, 0}};
    const int ready = ::poll(files, 2, static_cast<int>(left.count()));
    if (ready > 0) return false;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool HttpConnection::wait_for_tls(int result) const {
  const int why = SSL_get_error(ssl_, result);
  if (why == SSL_ERROR_WANT_READ) return wait(POLLIN);
  if (why == SSL_ERROR_WANT_WRITE) return wait(POLLOUT);
  return false;
}

bool HttpConnection::is_readable() const {
  return at_ < size_ || (ssl_ != nullptr && SSL_pending(ssl_) > 0) || wait(POLLIN);
}

ssize_t HttpConnection::read_some(char* to, size_t size) {
  if (ssl_ == nullptr) return wait(POLLIN) ? ::recv(socket_, to, size, 0) : -1;
  while (true) {
    ERR_clear_error();
    size_t count = 0;
    const int result = SSL_read_ex(ssl_, to, size, &count);
    if (result == 1) return static_cast<ssize_t>(count);
    if (SSL_get_error(ssl_, result) == SSL_ERROR_ZERO_RETURN) return 0;
    if (!wait_for_tls(result)) return -1;
  }
}

// Through a buffer, because the library reads headers byte by byte.
ssize_t HttpConnection::read(char* to, size_t size) {
  if (at_ == size_) {
    const ssize_t count = read_some(buffer_, sizeof buffer_);
    if (count <= 0) return count;
    at_ = 0;
    size_ = static_cast<size_t>(count);
  }
  const size_t count = std::min(size, size_ - at_);
  std::memcpy(to, buffer_ + at_, count);
  at_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t HttpConnection::write(const char* from, size_t size) {
  ssize_t wrote = -1;
  if (ssl_ == nullptr) {
    if (wait(POLLOUT)) wrote = ::send(socket_, from, size, MSG_NOSIGNAL);
  } else {
    while (true) {
      ERR_clear_error();
      size_t count = 0;
      const int result = SSL_write_ex(ssl_, from, size, &count);
      if (result == 1) wrote = static_cast<ssize_t>(count);
      if (result == 1 || !wait_for_tls(result)) break;
    }
  }
  if (wrote > 0 && renewal_ > Duration(0)) deadline_ = clock_.now() + renewal_;
  return wrote;
}

void HttpConnection::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip.clear();  // nobody asks
  port = 0;
}

}  // namespace pscloud

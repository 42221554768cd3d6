#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/fd.h"
#include "base/mutex.h"

namespace pscloud {

// An HTTP server on loopback for tests: what it gets is given to `answer`, whose bytes are sent back as they are,
// before the connection is closed; no bytes stand for a reset. One request at a time.
class ScriptedHttpServer {
 public:
  using Answer = std::function<std::string(const std::string& request)>;

  explicit ScriptedHttpServer(Answer answer) : answer_(std::move(answer)) {
    listen_on_loopback();
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  // On a socket of the file system instead.
  ScriptedHttpServer(Answer answer, const std::string& unix_socket) : answer_(std::move(answer)) {
    listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    CHECK(unix_socket.size() < sizeof address.sun_path);
    unix_socket.copy(address.sun_path, unix_socket.size());
    CHECK(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    CHECK(::listen(listener_.get(), 64) == 0);
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  const std::string& url() const { return url_; }
  std::vector<std::string> requests() {
    MutexLock lock(mutex_);
    return requests_;
  }

  static std::string text(int status, const std::string& body, const std::string& headers = "") {
    return "HTTP/1.1 " + std::to_string(status) + " Word\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\nConnection: close\r\n" + headers + "\r\n" + body;
  }

 private:
  void listen_on_loopback() {
    listener_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    CHECK(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
    CHECK(::listen(listener_.get(), 64) == 0);
    CHECK(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd waiting{.fd = listener_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&waiting, 1, 20) > 0) serve(Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
    }
  }

  void serve(const Fd& connection) {
    const timeval timeout{.tv_sec = 5, .tv_usec = 0};
    ::setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    std::string request;
    while (!whole(request)) {
      char buffer[4096];
      const ssize_t count = ::recv(connection.get(), buffer, sizeof buffer, 0);
      if (count <= 0) return;
      request.append(buffer, static_cast<size_t>(count));
    }
    {
      MutexLock lock(mutex_);
      requests_.push_back(request);
    }
    const std::string reply = answer_(request);
    if (reply.empty()) {
      const linger reset{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(connection.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
    for (size_t sent = 0; sent < reply.size();) {
      const ssize_t count = ::send(connection.get(), reply.data() + sent, reply.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return;
      sent += static_cast<size_t>(count);
    }
  }

  static bool whole(const std::string& request) {
    const size_t head = request.find("\r\n\r\n");
    if (head == std::string::npos) return false;
    const size_t length = request.find("Content-Length: ");
    size_t body = 0;
    if (length < head) std::from_chars(request.data() + length + 16, request.data() + head, body);
    return request.size() >= head + 4 + body;
  }

  const Answer answer_;
  Fd listener_;
  std::string url_;
  Mutex mutex_;
  std::vector<std::string> requests_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it uses the others
};

}  // namespace pscloud

#pragma once

#include <httplib.h>
#include <openssl/types.h>
#include <poll.h>

#include <memory>
#include <string>

#include "base/clock.h"
#include "pscloud/error.h"

namespace pscloud {

// The certificate and key of a server that anybody may connect to: who the client is, its request says.
class HttpTls {
 public:
  static Result<std::unique_ptr<HttpTls>> load(const std::string& certificate_file, const std::string& key_file);
  ~HttpTls();
  HttpTls(const HttpTls&) = delete;
  HttpTls& operator=(const HttpTls&) = delete;

  SSL* accept(int socket) const;

 private:
  explicit HttpTls(SSL_CTX* context) : context_(context) {}

  SSL_CTX* const context_;
};

// One connection that was accepted, closed with this. The library's own stream gives each byte a new time limit, so a
// client that trickles could hold a thread and stop() for hours; here it has one deadline for what is being done, and
// `stop_event` ends it at once. Its thread must not take SIGPIPE.
class HttpConnection final : public httplib::Stream {
 public:
  // `tls` may be null.
  HttpConnection(int socket, int stop_event, const HttpTls* tls, Duration time);
  ~HttpConnection() override;

  // Of TLS, if there is any.
  bool handshake();

  // From now on, instead of what was left.
  void set_time(Duration time);
  // Each write that succeeds begins the time anew.
  void renew_by_writing(Duration time);
  // Waits; false if the client has gone or the server stops.
  bool pause(Duration time) const;

  bool is_readable() const override;
  bool is_writable() const override { return wait(POLLOUT); }
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override { get_remote_ip_and_port(ip, port); }
  socket_t socket() const override { return socket_; }

 private:
  bool wait(short events) const;
  // After an operation of TLS that could not go on: true if it may be tried again.
  bool wait_for_tls(int result) const;
  ssize_t read_some(char* to, size_t size);
  void end();

  const int socket_;
  const int stop_event_;
  const SystemClock clock_;
  SSL* const ssl_;
  Time deadline_;
  Duration renewal_{0};
  char buffer_[4096];
  size_t at_ = 0;
  size_t size_ = 0;
};

}  // namespace pscloud

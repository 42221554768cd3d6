#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "pscloud/error.h"

namespace pscloud {

struct HttpReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// What a server has, by path: {"/health", ...}. A handler runs on a thread of the server, several at once.
using HttpRoutes = std::map<std::string, std::function<HttpReply()>>;

// Answers GET and HEAD for a few fixed paths, for people, probes and Prometheus. Each connection carries one request
// and has five seconds; connections that are too many wait in the kernel. Any other path is a 404 that lists the
// paths there are; a handler that throws is a 500 and a line in the log.
class HttpServer {
 public:
  // `address` is "host:port"; port 0 takes a free one. Or "unix:/folder/": a socket in that folder, by a name that is
  // free. kInvalid if it is no address, kUnavailable if it is taken.
  static Result<std::unique_ptr<HttpServer>> start(const std::string& address, HttpRoutes routes);
  ~HttpServer();  // stops

  // With the port, or the name, that was got.
  const std::string& address() const;

  // Breaks off what is being read or written, waits for handlers. May be called twice and from any thread but a
  // handler's.
  void stop();

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pscloud

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pscloud/error.h"

namespace pscloud {

// What a client asks for.
struct HttpCall {
  using Fields = std::vector<std::pair<std::string, std::string>>;

  std::string method;
  std::string path;  // decoded: it may have any byte in it
  Fields query;      // decoded
  Fields headers;
  std::string body;  // of POST
  bool secure = false;

  // The first of that name, in any case of letters; nullptr if there is none.
  const std::string* find_header(std::string_view name) const;
  // The first of that name; nullptr if there is none.
  const std::string* find_query(std::string_view name) const;
};

// The body of an answer while it is being written. One thread.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  // False if the client has gone, takes nothing for long, or the server stops: nothing more will arrive.
  virtual bool write(std::string_view bytes) = 0;
  // Waits; false as above, at once.
  virtual bool pause(std::chrono::milliseconds time) = 0;
};

struct HttpReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
  HttpCall::Fields headers = {};
  // Writes the body instead, on a thread of the server, as long as it takes: of `stream_bytes`, or until it returns.
  std::function<void(HttpStream& stream)> stream = {};
  std::optional<uint64_t> stream_bytes = {};
};

// Runs on a thread of the server, several at once.
using HttpHandler = std::function<HttpReply(const HttpCall& call)>;

// What a server has, by path: {"/health", ...}.
using HttpRoutes = std::map<std::string, std::function<HttpReply()>>;

struct HttpServerOptions {
  // "host:port"; port 0 takes a free one. Or "unix:/folder/": a socket in that folder, by a name that is free.
  std::string address;
  std::string certificate_file;  // PEM; with the key: TLS 1.3, and nothing else
  std::string key_file;
  size_t body_bytes_max = 4096;
  int streams_max = 0;  // answers that are streams, at the same time; the next is a 503
};

// Asks a handler for each request, whatever its method; the body of a POST is read before. Each connection carries one
// request, which must be there within five seconds; the client then has half a minute to take the answer, or, of a
// stream, kStreamTime for any of it. Connections that are too many wait in the kernel. A handler that throws is a 500
// and a line in the log. Every answer forbids browsers what a page of ours does not need: scripts of others, frames,
// guesses at types, telling where it came from.
class HttpServer {
 public:
  // kInvalid if the address is none or the certificate is none, kUnavailable if the address is taken.
  static Result<std::unique_ptr<HttpServer>> start(const HttpServerOptions& options, HttpHandler handler);
  // A few fixed paths, for people, probes and Prometheus: GET and HEAD only. Any other path is a 404 that lists them.
  static Result<std::unique_ptr<HttpServer>> start(const std::string& address, HttpRoutes routes);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // A stream that writes nothing for so long is cut off.
  static constexpr std::chrono::seconds kStreamTime{10};

  // With the port, or the name, that was got. The text does not change, so that it can be told to others.
  const std::string& address() const;

  // Ends all connections and waits for handlers; streams end at their next write or pause. May be called twice.
  void stop();

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace pscloud

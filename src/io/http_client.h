#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/random.h"
#include "pscloud/error.h"

namespace pscloud {

class CurlHandle;

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;  // names in lower case

struct HttpRequest {
  std::string method = "GET";
  std::string url = {};  // encoded
  HttpHeaders headers = {};
  std::string_view body = {};             // borrowed until the answer
  uint64_t response_bytes_max = 1 << 20;  // a longer one is an error
  bool follow = false;                    // redirections, to the same or a safer scheme
  bool must_end = false;                  // though the user wants no more, for it puts away what is left; but soon
  std::chrono::seconds stall = std::chrono::seconds(30);  // the longest without a kilobyte a second
};

struct HttpResponse {
  int status = 0;
  HttpHeaders headers = {};
  std::string body = {};
  int tries = 1;  // what was asked for may have been done by an earlier one

  // Its value; empty if it is not there.
  std::string header(std::string_view name) const;
};

struct HttpOptions {
  int tries = 8;
  std::chrono::milliseconds connect_timeout{10000};
  std::chrono::milliseconds total_timeout{0};  // of one try; 0: as long as bytes come
  std::function<bool()> cancelled = {};        // asked by any thread, about once a second or more
  std::string ca_file = {};                    // instead of the system's authorities
  std::string ca_pem = {};                     // the same, by content
  std::string certificate_pem = {};            // our own, for servers that ask who we are
  std::string key_pem = {};                    // of that certificate
  bool proxy = true;                           // as http_proxy, https_proxy and no_proxy say
  std::string unix_socket = {};                // connects there, whatever the URL says
  // Is given the other end of each new connection, a stream socket, and brings it to the server, whatever the URL says.
  std::function<Result<>(Fd)> carry = {};
  std::string peer = {};  // for messages; else the host of the URL
};

// Sends requests over HTTP and HTTPS, and again if the network or the server fails in a way that may pass: no
// connection, a connection that breaks or stalls, 408, 429, 500, 502, 503 and 504, each time after a longer wait.
// Servers prove who they are by their certificates, always. Connections are kept for the next request. Thread-safe.
class HttpClient {
 public:
  explicit HttpClient(HttpOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Adds headers before each try, such as a signature, which goes stale.
  using Prepare = std::function<Result<>(HttpRequest& request)>;

  // The answer, whatever its status. kUnavailable or kTimeout if none came, kFailed if cancelled or `stop` is asked
  // for. Errors name the host.
  Result<HttpResponse> send(const HttpRequest& request, const Prepare& prepare = {}, std::stop_token stop = {});

 private:
  std::unique_ptr<CurlHandle> take_handle() EXCLUDES(mutex_);
  void give_back(std::unique_ptr<CurlHandle> handle) EXCLUDES(mutex_);
  bool wants_no_more(const HttpRequest& request, const std::stop_token& stop) const;
  std::chrono::milliseconds pause_before(int next_try) EXCLUDES(mutex_);
  bool pause(std::chrono::milliseconds time, const HttpRequest& request, const std::stop_token& stop) const;

  const HttpOptions options_;
  Mutex mutex_;
  std::vector<std::unique_ptr<CurlHandle>> idle_ GUARDED_BY(mutex_);
  Random random_ GUARDED_BY(mutex_);
};

// "host:port" of a URL, for messages.
std::string_view host_of(std::string_view url);

}  // namespace pscloud

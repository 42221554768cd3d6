#pragma once

#include <curl/curl.h>

#include <array>
#include <string>

#include "base/check.h"
#include "io/http_client.h"

namespace pscloud {

// One handle of libcurl, for http_client.cc and http_client_streams.cc alone.
class CurlHandle {
 public:
  CurlHandle();
  ~CurlHandle();
  CurlHandle(const CurlHandle&) = delete;
  CurlHandle& operator=(const CurlHandle&) = delete;

  // What is asked of whom, and how; but not where the answer goes. Both must outlive the transfer.
  void prepare(const HttpRequest& request, const HttpOptions& options);

  template <class T>
  void set(CURLoption option, T value) {
    const CURLcode code = curl_easy_setopt(curl_, option, value);
    CHECK(code == CURLE_OK, "libcurl refuses option {}: {}", static_cast<int>(option), curl_easy_strerror(code));
  }

  CURL* get() const { return curl_; }
  int status() const;
  // Why it failed with `code`.
  std::string why(CURLcode code) const;

 private:
  static int on_connected(void* user, char* ip, char* local_ip, int port, int local_port);
  void listen();
  void stop_listening();
  void set_blob(CURLoption option, const std::string& bytes);
  void set_body(const HttpRequest& request);
  void set_headers(const HttpRequest& request);

  CURL* curl_;
  curl_slist* lines_ = nullptr;
  std::array<char, CURL_ERROR_SIZE> complaint_{};
  const HttpOptions* options_ = nullptr;
  Fd listener_;                // where a connection that is carried is made to, for the moment in which it is made
  std::string listener_path_;  // always the same: libcurl knows by it what it may use again
  std::string no_connection_;  // what HttpOptions::carry said
};

// Whether it will perhaps not happen again.
bool may_pass(CURLcode code);

}  // namespace pscloud

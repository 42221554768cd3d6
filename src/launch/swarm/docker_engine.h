#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_value.h"
#include "io/http_client.h"
#include "pscloud/error.h"

namespace pscloud {

// How an engine is reached.
struct EngineAddress {
  std::string text;  // as DOCKER_HOST has it, for messages and to find it again
  std::string url;   // in front of each path
  HttpOptions http;
};

// `host` as DOCKER_HOST has it: unix:///var/run/docker.sock, ssh://user@host, tcp://host:2376. Empty: what DOCKER_HOST
// says, else the socket of this machine. With tcp the engine proves who it is, and so do we, by ca.pem, cert.pem and
// key.pem of DOCKER_CERT_PATH (else ~/.docker). Plain tcp is refused but on loopback: who may speak to an engine is
// root on its machine.
Result<EngineAddress> find_engine(const std::string& host);

// The API of a Docker engine (https://docs.docker.com/engine/api). One thread.
class DockerEngine {
 public:
  using Query = std::vector<std::pair<std::string, std::string>>;

  explicit DockerEngine(EngineAddress address);

  const EngineAddress& address() const { return address_; }

  // What it answers, as JSON. Errors have the engine's own words: kNotFound for 404, kInvalid for what is wrong with
  // the request, kUnavailable if it cannot be reached or says so.
  Result<JsonValue> get(const std::string& path, const Query& query = {});
  Result<JsonValue> post(const std::string& path, std::string_view body, const Query& query = {},
                         const HttpHeaders& headers = {});
  // Also if it is not there.
  Result<> remove(const std::string& path);

  // The answer as it comes.
  Result<std::string> get_bytes(const std::string& path, const Query& query, uint64_t bytes_max);
  HttpRequest request(const std::string& path, const Query& query) const;

  // A docker-archive. May take minutes, as the next.
  Result<> load_image(std::string_view archive);
  // To its registry, with what registry_auth() gives.
  Result<> push_image(const std::string& repository, const std::string& tag, const std::string& auth);

 private:
  Result<HttpResponse> send(const HttpRequest& request);
  Result<> watch(HttpRequest request, std::string_view what);

  const EngineAddress address_;
  HttpClient client_;
};

// {"label":["pscloud.job=j1"]}, the form of the parameter `filters`.
std::string engine_filter(std::string_view name, const std::string& value);

}  // namespace pscloud

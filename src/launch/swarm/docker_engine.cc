#include "launch/swarm/docker_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/json.h"
#include "io/aws_signature.h"
#include "io/file_store.h"
#include "launch/process/spawn.h"
#include "launch/swarm/ssh_dial.h"
#include "net/address.h"

namespace pscloud {
namespace {

constexpr const char* kDefaultHost = "unix:///var/run/docker.sock";
constexpr const char* kTlsPort = "2376";
constexpr uint64_t kPemBytesMax = 1 << 20;
constexpr uint64_t kAnswerBytesMax = 64 << 20;
constexpr std::chrono::seconds kWorkStall{600};  // without a word
constexpr std::string_view kCreate = "/create";

Result<EngineAddress> tcp_engine(EngineAddress engine, std::string_view rest) {
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const bool has_port = rest.rfind(':') != std::string_view::npos && !rest.ends_with(']');
  const std::string text = has_port ? std::string(rest) : fmt::format("{}:{}", rest, kTlsPort);
  const Address address = TRY(parse_address(text).at(engine.text));
  const bool tls = !own_variable("DOCKER_TLS_VERIFY").empty() || !own_variable("DOCKER_CERT_PATH").empty();
  if (!tls) {
    if (!is_loopback(address.host)) {
      return invalid(
          "{}: without TLS whoever can reach it is root there, and so are we to whoever listens; set "
          "DOCKER_TLS_VERIFY=1 "
          "and DOCKER_CERT_PATH, or use ssh://",
          engine.text);
    }
    engine.url = "http://" + address.text();
    return engine;
  }
  std::string folder = own_variable("DOCKER_CERT_PATH");
  if (folder.empty()) folder = own_variable("HOME") + "/.docker";
  const auto read = [&](const char* name) -> Result<std::string> {
    const auto store = make_local_store();
    const auto input = store->open(fmt::format("{}/{}", folder, name), {});
    if (input) return read_all(**input, kPemBytesMax);
    return invalid("{}: there is no {} in {}: DOCKER_CERT_PATH names the folder of ca.pem, cert.pem and key.pem",
                   engine.text, name, folder);
  };
  engine.url = "https://" + address.text();
  engine.http.ca_pem = TRY(read("ca.pem"));
  engine.http.certificate_pem = TRY(read("cert.pem"));
  engine.http.key_pem = TRY(read("key.pem"));
  return engine;
}

Error engine_error(const std::string& engine, const HttpRequest& request, std::string_view url,
                   const HttpResponse& answer) {
  std::string message;
  if (const auto json = JsonValue::parse(answer.body)) message = (*json)["message"].text();
  if (message.empty()) message = fmt::format("status {}", answer.status);
  while (message.ends_with('\n') || message.ends_with('.')) message.pop_back();
  const std::string_view path = std::string_view(request.url).substr(url.size());
  message = fmt::format("the Docker engine at {}: {} {}: {}", engine, request.method, path.substr(0, path.find('?')),
                        message);
  if (answer.status == 404) return {Code::kNotFound, message};
  if (answer.status >= 500) return {Code::kUnavailable, message};
  return {Code::kInvalid, message};
}

}  // namespace

Result<EngineAddress> find_engine(const std::string& host) {
  EngineAddress engine;
  engine.text = !host.empty() ? host : own_variable("DOCKER_HOST");
  if (engine.text.empty()) engine.text = kDefaultHost;
  engine.http.tries = 4;
  engine.http.proxy = false;
  engine.http.peer = "the Docker engine at " + engine.text;
  const std::string_view text = engine.text;
  const size_t colon = text.find("://");
  const std::string_view scheme = text.substr(0, colon == std::string_view::npos ? 0 : colon);
  const std::string_view rest = scheme.empty() ? std::string_view() : text.substr(colon + 3);
  if (scheme == "unix" && rest.starts_with('/')) {
    engine.url = "http://docker";
    engine.http.unix_socket = rest;
    return engine;
  }
  if (scheme == "ssh" && !rest.empty()) {
    engine.url = "http://docker";
    engine.http.carry = TRY(ssh_dial(engine.text));
    return engine;
  }
  if (scheme == "tcp" && !rest.empty()) return tcp_engine(std::move(engine), rest);
  return invalid("'{}' is no address of a Docker engine: unix:///var/run/docker.sock, ssh://user@host, tcp://host:2376",
                 engine.text);
}

DockerEngine::DockerEngine(EngineAddress address) : address_(std::move(address)), client_(address_.http) {}

HttpRequest DockerEngine::request(const std::string& path, const Query& query) const {
  HttpRequest request;
  request.url = address_.url + path;
  if (!query.empty()) request.url += "?" + encoded_query(query);
  request.response_bytes_max = kAnswerBytesMax;
  return request;
}

Result<HttpResponse> DockerEngine::send(const HttpRequest& request) {
  HttpResponse answer = TRY(client_.send(request));
  if (answer.status >= 400) return engine_error(address_.text, request, address_.url, answer);
  return answer;
}

Result<JsonValue> DockerEngine::get(const std::string& path, const Query& query) {
  const HttpResponse answer = TRY(send(request(path, query)));
  return JsonValue::parse(answer.body).at(fmt::format("the Docker engine at {}: {}", address_.text, path));
}

Result<JsonValue> DockerEngine::post(const std::string& path, std::string_view body, const Query& query,
                                     const HttpHeaders& headers) {
  HttpRequest request = this->request(path, query);
  request.method = "POST";
  request.headers = headers;
  request.headers.emplace_back("content-type", "application/json");
  request.body = body;
  const HttpResponse answer = TRY(client_.send(request));
  if (answer.status == 409 && answer.tries > 1 && path.ends_with(kCreate)) {
    // Names are the job's own: what is there already was made by a try whose answer did not come.
    const JsonValue wanted = TRY(JsonValue::parse(body));
    return get(path.substr(0, path.size() - kCreate.size()) + "/" + wanted["Name"].text());
  }
  if (answer.status >= 400) return engine_error(address_.text, request, address_.url, answer);
  if (answer.body.empty()) return JsonValue();
  return JsonValue::parse(answer.body).at(fmt::format("the Docker engine at {}: {}", address_.text, path));
}

Result<> DockerEngine::remove(const std::string& path) {
  HttpRequest request = this->request(path, {});
  request.method = "DELETE";
  request.must_end = true;
  const auto answer = send(request);
  if (!answer && answer.error().code != Code::kNotFound) return answer.error();
  return {};
}

Result<std::string> DockerEngine::get_bytes(const std::string& path, const Query& query, uint64_t bytes_max) {
  HttpRequest request = this->request(path, query);
  request.response_bytes_max = bytes_max;
  return TRY(send(request)).body;
}

// A long work, of which the engine tells by JSON objects, a line each; its status was sent before anything was done.
Result<> DockerEngine::watch(HttpRequest request, std::string_view what) {
  request.method = "POST";
  request.stall = kWorkStall;
  const HttpResponse answer = TRY(send(request));
  for (std::string_view rest = answer.body; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const auto json = JsonValue::parse(line);
    if (json && !(*json)["error"].text().empty()) {
      return job_failed("the Docker engine at {} does not {}: {}", address_.text, what, (*json)["error"].text());
    }
  }
  return {};
}

Result<> DockerEngine::load_image(std::string_view archive) {
  HttpRequest request = this->request("/images/load", {{"quiet", "1"}});
  request.headers = {{"content-type", "application/x-tar"}};
  request.body = archive;
  return watch(std::move(request), "take the image");
}

Result<> DockerEngine::push_image(const std::string& repository, const std::string& tag, const std::string& auth) {
  HttpRequest request = this->request("/images/" + encoded_path(repository) + "/push", {{"tag", tag}});
  request.headers = {{"x-registry-auth", auth}};
  return watch(std::move(request), fmt::format("push {}:{}", repository, tag));
}

std::string engine_filter(std::string_view name, const std::string& value) {
  return JsonWriter().begin_object().key(name).begin_array().value(value).end_array().end_object().text();
}

}  // namespace pscloud

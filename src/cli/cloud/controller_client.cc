#include "cli/cloud/controller_client.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/json.h"
#include "cli/private_file.h"
#include "launch/cloud/cloud_controller.h"
#include "launch/run_folder.h"
#include "net/address.h"

namespace pscloud {
namespace {

constexpr uint64_t kLogPieceMax = 1 << 20;
constexpr uint64_t kAnswerBytesMax = 64 << 20;

Result<std::string> controllers_folder() {
  const std::string runs = TRY(find_runs_folder());
  return std::filesystem::path(runs).parent_path().string() + "/controllers";
}

Result<ControllerAccess> read_access(const std::string& path) {
  const std::string text = TRY(read_small_file(path));
  const JsonValue value = TRY(JsonValue::parse(text).at(path));
  return ControllerAccess{value["url"].text(), value["token"].text(), value["ca"].text(), value["cluster"].text()};
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == '/')) text.pop_back();
  return text;
}

Result<ControllerAccess> find_by_url(const std::string& url) {
  const std::string folder = TRY(controllers_folder());
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    auto access = read_access(entry.path().string());
    if (access && access->url == url && access->cluster.empty()) return access;
  }
  return ControllerAccess{url, "", "", ""};
}

// What is wrong, in the words of the server.
Error refusal(const HttpResponse& reply) {
  const auto value = JsonValue::parse(reply.body);
  std::string message = value ? (*value)["error"].text() : "";
  if (message.empty()) message = fmt::format("the controller answers with status {}", reply.status);
  if (reply.status == 401) {
    return invalid("the controller does not know this token: $PSCLOUD_TOKEN or --token-file must have the right one");
  }
  if (reply.status == 404) return not_found("{}", message);
  if (reply.status < 500) return invalid("{}", message);
  return unavailable("{}", message);
}

}  // namespace

void add_controller_flags(CLI::App& verb, ControllerFlags& flags) {
  verb.add_option("--controller", flags.controller, "ask this controller: its URL, or a run started on one")
      ->type_name("URL");
  verb.add_option("--token-file", flags.token_file, "of that URL [$PSCLOUD_TOKEN]")->type_name("FILE");
  verb.add_option("--ca", flags.ca_file, "who proves that URL [the system's]")->type_name("FILE");
}

Result<> keep_access(const std::string& name, const ControllerAccess& access) {
  JsonWriter json;
  json.begin_object().field("url", access.url).field("token", access.token).field("ca", access.ca_pem);
  if (!access.cluster.empty()) json.field("cluster", access.cluster);
  const std::string folder = TRY(controllers_folder());
  return write_private_file(fmt::format("{}/{}.json", folder, name), json.end_object().text() + "\n");
}

Result<ControllerAccess> find_access(const ControllerFlags& flags) {
  ControllerAccess access;
  if (flags.controller.find("://") == std::string::npos) {
    if (flags.controller.find('/') != std::string::npos) return invalid("'{}' is no URL", flags.controller);
    const std::string folder = TRY(controllers_folder());
    auto kept = read_access(fmt::format("{}/{}.json", folder, flags.controller));
    if (!kept) {
      return not_found("no controller was started from here for a run '{}': give its URL, https://host:port",
                       flags.controller);
    }
    access = *std::move(kept);
  } else {
    access = TRY(find_by_url(trimmed(flags.controller)));
  }
  if (!flags.token_file.empty()) access.token = trimmed(TRY(read_small_file(flags.token_file)));
  if (!flags.ca_file.empty()) access.ca_pem = TRY(read_small_file(flags.ca_file));
  if (const char* token = std::getenv("PSCLOUD_TOKEN"); token != nullptr && flags.token_file.empty()) {
    access.token = token;
  }
  if (access.token.empty()) return invalid("{}: its token is missing: $PSCLOUD_TOKEN, or --token-file", access.url);
  // The token would go over the wire for all to read.
  const std::string host(host_of(access.url));
  if (access.url.starts_with("http://") && !is_loopback(host.substr(0, host.rfind(':')))) {
    return invalid("{}: without TLS only this machine itself is asked; https://...", access.url);
  }
  return access;
}

Result<std::unique_ptr<SshTunnel>> open_tunnel(const ControllerAccess& access) {
  if (access.cluster.empty()) return std::unique_ptr<SshTunnel>();
  const auto address = parse_address(host_of(access.url));
  if (!address) return address.error();
  const ControllerWay way = TRY(way_to_controller(access.cluster));
  return SshTunnel::open(way.host, way.ssh, address->port)
      .at("the controller, which ends when its run has ended and was taken down, is not reached");
}

ControllerClient::ControllerClient(ControllerAccess access, std::unique_ptr<SshTunnel> tunnel)
    : access_(std::move(access)), tunnel_(std::move(tunnel)) {
  HttpOptions options;
  options.tries = 3;
  options.ca_pem = access_.ca_pem;
  const std::string host(host_of(access_.url));
  options.proxy = !is_private(host.substr(0, host.rfind(':')));
  if (tunnel_) {
    options.carry = [way = tunnel_.get()](const Fd& connection) { return way->carry(connection); };
    options.peer = fmt::format("the controller of {}", access_.cluster);
  }
  http_ = std::make_unique<HttpClient>(options);
}

Result<ControllerClient> ControllerClient::open(const ControllerFlags& flags) {
  ControllerAccess access = TRY(find_access(flags));
  auto tunnel = TRY(open_tunnel(access));
  return ControllerClient(std::move(access), std::move(tunnel));
}

Result<HttpResponse> ControllerClient::send(const char* method, const std::string& path, const HttpHeaders& headers) {
  HttpRequest request;
  request.method = method;
  request.url = access_.url + path;
  request.headers = headers;
  request.headers.emplace_back("authorization", "Bearer " + access_.token);
  request.response_bytes_max = kAnswerBytesMax;
  return http_->send(request);
}

Result<JsonValue> ControllerClient::get(const std::string& path) {
  const HttpResponse reply = TRY(send("GET", path, {}));
  if (reply.status != 200) return refusal(reply);
  return JsonValue::parse(reply.body);
}

Result<JsonValue> ControllerClient::post(const std::string& path) {
  const HttpResponse reply = TRY(send("POST", path, {{"x-pscloud", "1"}}));
  if (reply.status != 202) return refusal(reply);
  return JsonValue::parse(reply.body);
}

Result<std::string> ControllerClient::read_log(const std::string& run, const std::string& task, uint64_t offset) {
  HttpResponse reply = TRY(send("GET", fmt::format("/api/runs/{}/logs/{}", run, task),
                                {{"range", fmt::format("bytes={}-{}", offset, offset + kLogPieceMax - 1)}}));
  if (reply.status == 416) return std::string();
  // A log that is not there yet has no ranges.
  if (reply.status != 206 && (reply.status != 200 || !reply.body.empty())) return refusal(reply);
  return std::move(reply.body);
}

}  // namespace pscloud

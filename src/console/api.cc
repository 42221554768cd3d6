#include "console/api.h"

#include <utility>

#include "base/check.h"
#include "base/json.h"
#include "console/api_parts.h"
#include "console/reply.h"
#include "net/address.h"
#include "net/secret.h"

namespace pscloud {
namespace {

constexpr std::string_view kApi = "/api/";
constexpr std::string_view kRuns = "/api/runs";

HttpReply wrong_method(const char* allowed) {
  HttpReply reply = error_reply(405, fmt::format("this answers {} only", allowed));
  reply.headers.emplace_back("Allow", allowed);
  return reply;
}

// A page of somebody else can make a browser send a POST, but not with this header, and not without saying whose it is.
bool comes_from_us(const HttpCall& call) {
  const std::string* mark = call.find_header("X-Pscloud");
  if (mark == nullptr || *mark != "1") return false;
  const std::string* origin = call.find_header("Origin");
  const std::string* host = call.find_header("Host");
  if (origin == nullptr) return true;
  if (host == nullptr) return false;
  // `pscloud console --controller` opens the page on the loopback, in the clear, and brings it here over TLS.
  const bool in_the_clear = !call.secure || is_loopback(host->substr(0, host->rfind(':')));
  return (call.secure && *origin == "https://" + *host) || (in_the_clear && *origin == "http://" + *host);
}

}  // namespace

Api::Api(ApiOptions options) : options_(std::move(options)) { CHECK(!options_.token.empty(), "the API needs a token"); }

bool Api::has_token(const HttpCall& call) const {
  constexpr std::string_view kBearer = "Bearer ";
  if (const std::string* header = call.find_header("Authorization");
      header != nullptr && header->starts_with(kBearer)) {
    return is_secret(std::string_view(*header).substr(kBearer.size()), options_.token);
  }
  const std::string* query = call.find_query("token");
  return query != nullptr && is_secret(*query, options_.token);
}

HttpReply Api::answer(const HttpCall& call) const {
  const bool reads = call.method == "GET" || call.method == "HEAD";
  if (call.path == "/" || call.path.starts_with("/assets/"))
    return reads ? page_reply(call) : wrong_method("GET, HEAD");
  if (!has_token(call)) {
    HttpReply reply = error_reply(401, "a token is needed: `Authorization: Bearer TOKEN`, or `?token=TOKEN`");
    reply.headers.emplace_back("WWW-Authenticate", "Bearer");
    return reply;
  }
  if (!reads && call.method != "POST") return wrong_method("GET, HEAD, POST");
  if (!call.path.starts_with(kApi)) return paddle_reply(options_, call);
  if (call.method == "POST" && !comes_from_us(call)) {
    return error_reply(403, "a POST needs the header `X-Pscloud: 1`, and no other Origin than this server");
  }
  return answer_api(call);
}

HttpReply Api::answer_api(const HttpCall& call) const {
  const bool posts = call.method == "POST";
  if (call.path == "/api/about") return posts ? wrong_method("GET, HEAD") : about_reply(options_);
  if (call.path == kRuns) return posts ? wrong_method("GET, HEAD") : runs_reply(options_.runs, call);
  if (!call.path.starts_with(kRuns) || call.path[kRuns.size()] != '/') {
    return error_reply(404, "there is nothing of this name; docs/controller.md lists what there is");
  }
  const std::string rest = call.path.substr(kRuns.size() + 1);
  const size_t slash = rest.find('/');
  return answer_run(call, rest.substr(0, slash), slash == std::string::npos ? "" : rest.substr(slash));
}

HttpReply Api::answer_run(const HttpCall& call, const std::string& run, const std::string& rest) const {
  constexpr std::string_view kLogs = "/logs/";
  const bool acts = rest == "/stop" || rest == "/cleanup";
  auto folder = find_run(options_.runs, run);
  if (!folder) return error_reply(folder.error());
  if (acts != (call.method == "POST")) return wrong_method(acts ? "POST" : "GET, HEAD");
  if (acts) {
    const auto state = begin_stop(options_, *folder);
    if (!state) return error_reply(state.error());
    if (rest == "/cleanup") options_.cleanup_asked(folder->name());
    JsonWriter json;
    return json_reply(json.begin_object().field("state", *state).end_object().text(), 202);
  }
  if (rest.empty()) return run_reply(*folder);
  if (rest == "/samples") return samples_reply(*folder, call);
  if (rest == "/nodes") return nodes_reply(*folder);
  if (rest == "/stream") return stream_reply(*std::move(folder), call);
  if (rest.starts_with(kLogs)) return log_reply(*folder, rest.substr(kLogs.size()), call);
  return error_reply(404, "a run has nothing of this name; docs/controller.md lists what there is");
}

}  // namespace pscloud

#include "launch/kubernetes/kube_api.h"

#include <fmt/format.h>

#include "io/aws_signature.h"

namespace pscloud {
namespace {

constexpr uint64_t kKubeAnswerMax = 64 << 20;
constexpr const char* kAuthorization = "authorization";

Error kube_error(const KubeAccess& access, const HttpRequest& request, const HttpResponse& answer) {
  std::string message;
  if (const auto json = JsonValue::parse(answer.body)) message = (*json)["message"].text();
  if (message.empty()) message = fmt::format("status {}", answer.status);
  const std::string_view path = std::string_view(request.url).substr(access.server.size());
  message = fmt::format("Kubernetes at {}: {} {}: {}", access.server, request.method, path.substr(0, path.find('?')),
                        message);
  if (answer.status == 404) return {Code::kNotFound, message};
  if (answer.status >= 500 || answer.status == 429) return {Code::kUnavailable, message};
  return {Code::kInvalid, message};
}

}  // namespace

std::string kube_within(int grace_seconds) {
  return fmt::format(R"({{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":{}}})", grace_seconds);
}

KubeApi::KubeApi(KubeAccess access, std::function<Result<KubeAccess>()> find)
    : access_(std::move(access)), find_(std::move(find)), client_(access_.http) {}

std::string KubeApi::path(std::string_view api, std::string_view collection) const {
  return fmt::format("{}/namespaces/{}/{}", api, access_.name_space, collection);
}

HttpRequest KubeApi::request(const std::string& path, const Query& query) const {
  HttpRequest request;
  request.url = access_.server + path;
  if (!query.empty()) request.url += "?" + encoded_query(query);
  if (!access_.token.empty()) request.headers.emplace_back(kAuthorization, "Bearer " + access_.token);
  request.response_bytes_max = kKubeAnswerMax;
  return request;
}

Result<HttpResponse> KubeApi::send_once_more(HttpRequest request) {
  HttpResponse answer = TRY(client_.send(request));
  if (answer.status != 401 || !find_) return answer;
  const auto renewed = find_();
  if (!renewed || renewed->token == access_.token) return answer;
  access_.token = renewed->token;
  std::erase_if(request.headers, [](const auto& header) { return header.first == kAuthorization; });
  request.headers.emplace_back(kAuthorization, "Bearer " + access_.token);
  return client_.send(request);
}

Result<HttpResponse> KubeApi::send(const HttpRequest& request) {
  HttpResponse answer = TRY(send_once_more(request));
  if (answer.status >= 400) return kube_error(access_, request, answer);
  return answer;
}

Result<JsonValue> KubeApi::get(const std::string& path, const Query& query) {
  const HttpResponse answer = TRY(send(request(path, query)));
  return JsonValue::parse(answer.body).at(fmt::format("Kubernetes at {}: {}", access_.server, path));
}

Result<> KubeApi::create(const KubeObject& object) {
  HttpRequest request = this->request(path(object.api, object.collection), {});
  request.method = "POST";
  request.headers.emplace_back("content-type", "application/json");
  request.body = object.json;
  const HttpResponse answer = TRY(send_once_more(request));
  // Names are the job's own: what is there already was made by a try whose answer did not come.
  if (answer.status == 409 && answer.tries > 1) return {};
  if (answer.status >= 400) return kube_error(access_, request, answer);
  return {};
}

Result<> KubeApi::remove(const std::string& path, const std::string& options) {
  HttpRequest request = this->request(path, {});
  request.method = "DELETE";
  request.headers.emplace_back("content-type", "application/json");
  request.body = options;
  request.must_end = true;
  const auto answer = send(request);
  if (!answer && answer.error().code != Code::kNotFound) return answer.error();
  return {};
}

}  // namespace pscloud

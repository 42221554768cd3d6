#include "launch/cloud/aws_api.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <thread>
#include <utility>

#include "launch/cloud/patience.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;

constexpr const char* kEc2Version = "2016-11-15";
constexpr const char* kStsVersion = "2011-06-15";
constexpr uint64_t kAnswerBytesMax = 64 << 20;
constexpr milliseconds kHastyTimeout{10000};
constexpr int kHastyTries = 2;
constexpr int kPagesMax = 1000;
constexpr milliseconds kThrottlePause{250};
constexpr milliseconds kThrottlePauseMax{5000};
constexpr size_t kWordsMax = 400;

// Some say it with 503, which HttpClient repeats; some with 400.
constexpr std::array kThrottles = {"RequestLimitExceeded", "Throttling", "ThrottlingException", "RequestThrottled",
                                   "Client.RequestLimitExceeded"};

bool is_throttle(const std::string& code) { return std::ranges::find(kThrottles, code) != kThrottles.end(); }

// What curl sends as Host: without a port that is the scheme's own.
std::string host_to_sign(const std::string& url) {
  std::string host(host_of(url));
  const std::string_view own = url.starts_with("https:") ? ":443" : ":80";
  if (host.ends_with(own)) host.resize(host.size() - own.size());
  return host;
}

std::string amazon_host(const std::string& service, const std::string& region) {
  return fmt::format("{}.{}.amazonaws.com{}", service, region, region.starts_with("cn-") ? ".cn" : "");
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// As a form has it, and AWS's own programs send it: a space is '+' there.
std::string encoded_form(const TextPairs& pairs) {
  std::string text = encoded_query(pairs);
  for (size_t at = 0; (at = text.find("%20", at)) != std::string::npos; ++at) text.replace(at, 3, "+");
  return text;
}

// <Response><Errors><Error><Code>..</Code><Message>..</Message></Error></Errors></Response>
const XmlElement* error_of(const XmlElement& root) {
  const XmlElement* errors = root.child("Errors");
  const XmlElement* error = errors == nullptr ? root.child("Error") : errors->child("Error");
  return root.name == "Error" ? &root : error;
}

bool is_denial(const std::string& code) {
  return code == "UnauthorizedOperation" || code == "AccessDenied" || code == "AccessDeniedException";
}

// "... is not authorized to perform: iam:PassRole on resource ...": what is lacking need not be the call itself.
std::string permission_in(const std::string& message, const std::string& service, const std::string& action) {
  constexpr std::string_view kPerform = "to perform: ";
  const size_t at = message.find(kPerform);
  if (at == std::string::npos) return fmt::format("{}:{}", service, action);
  const size_t begin = at + kPerform.size();
  return message.substr(begin, message.find_first_of(" ,\n", begin) - begin);
}

Error denied(const std::string& source, const std::string& permission) {
  return invalid("denied: the keys (from {}) lack the permission {}; docs/cloud-policy.json has all that are needed",
                 source, permission);
}

}  // namespace

bool may_pass(const Error& error) { return error.code == Code::kUnavailable || error.code == Code::kTimeout; }

Ec2Form& Ec2Form::set(std::string name, std::string value) {
  pairs_.emplace_back(std::move(name), std::move(value));
  return *this;
}

Ec2Form& Ec2Form::filter(const std::string& name, const std::vector<std::string>& values) {
  const std::string prefix = fmt::format("Filter.{}.", ++filters_);
  set(prefix + "Name", name);
  for (size_t i = 0; i < values.size(); ++i) set(fmt::format("{}Value.{}", prefix, i + 1), values[i]);
  return *this;
}

Ec2Form& Ec2Form::tags(const std::vector<std::string>& types, const TextPairs& tags) {
  for (const std::string& type : types) {
    const std::string prefix = fmt::format("TagSpecification.{}.", ++tagged_types_);
    set(prefix + "ResourceType", type);
    for (size_t i = 0; i < tags.size(); ++i) {
      set(fmt::format("{}Tag.{}.Key", prefix, i + 1), tags[i].first);
      set(fmt::format("{}Tag.{}.Value", prefix, i + 1), tags[i].second);
    }
  }
  return *this;
}

Result<AwsApi> AwsApi::open(AwsApiOptions options) {
  std::string region = options.region;
  if (region.empty()) region = TRY(aws_region(options.environment));
  std::string endpoint = options.endpoint;
  if (endpoint.empty()) endpoint = TRY(aws_endpoint(options.environment, "EC2"));
  if (endpoint.empty()) endpoint = "https://" + amazon_host("ec2", region);
  if (!endpoint.starts_with("http://") && !endpoint.starts_with("https://")) {
    return invalid("the endpoint {} must begin with https:// or http://", endpoint);
  }
  while (endpoint.ends_with('/')) endpoint.pop_back();
  return AwsApi(std::move(options), std::move(region), std::move(endpoint));
}

AwsApi::AwsApi(AwsApiOptions options, std::string region, std::string endpoint)
    : environment_(std::move(options.environment)),
      cancelled_(std::move(options.cancelled)),
      region_(std::move(region)),
      endpoint_(std::move(endpoint)),
      to_be_known_(options.to_be_known),
      tries_(aws_tries(environment_, HttpOptions{}.tries)) {
  HttpOptions http{.tries = tries_,
                   .total_timeout = options.call_timeout,
                   .cancelled = cancelled_,
                   .ca_file = environment_("AWS_CA_BUNDLE")};
  http_ = std::make_unique<HttpClient>(http);
  http.tries = std::min(tries_, kHastyTries);
  http.total_timeout = std::min(options.call_timeout, kHastyTimeout);
  hasty_http_ = std::make_unique<HttpClient>(http);
  credentials_ = std::make_unique<AwsCredentialSource>(environment_, cancelled_);
}

Result<HttpResponse> AwsApi::send(HttpClient& http, const Request& request) {
  const AwsRequest to_sign{.method = "POST",
                           .host = request.host,
                           .path = "/",
                           .headers = request.headers,
                           .payload_hash = sha256_hex(request.body)};
  const HttpRequest unsigned_request{.method = "POST",
                                     .url = request.url + "/",
                                     .headers = request.headers,
                                     .body = request.body,
                                     .response_bytes_max = kAnswerBytesMax};
  return http.send(unsigned_request, [&](HttpRequest& each) -> Result<> {
    const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
    const TextPairs added = aws_signature(to_sign, TRY(credentials_->get()), request.region, request.service, now);
    each.headers.insert(each.headers.end(), added.begin(), added.end());
    return {};
  });
}

Result<Ec2Answer> AwsApi::ask(const std::string& action, const Ec2Form& form) {
  return ask({"ec2", "EC2", kEc2Version, endpoint_}, action, form);
}

Result<XmlElement> AwsApi::call_sts(const std::string& action, const Ec2Form& form) {
  std::string url = TRY(aws_endpoint(environment_, "STS"));
  if (url.empty()) url = "https://" + amazon_host("sts", region_);
  Ec2Answer answer = TRY(ask({"sts", "STS", kStsVersion, std::move(url)}, action, form));
  if (!answer.refused.empty()) return answer.error;
  return std::move(answer.body);
}

Result<Ec2Answer> AwsApi::ask(const FormService& service, const std::string& action, const Ec2Form& form) {
  TextPairs pairs = form.pairs();
  pairs.emplace_back("Action", action);
  pairs.emplace_back("Version", service.version);
  const std::string what = fmt::format("{} {}", service.words, action);
  const Request request{.url = service.url,
                        .host = host_to_sign(service.url),
                        .headers = {{"content-type", "application/x-www-form-urlencoded; charset=utf-8"}},
                        .body = encoded_form(pairs),
                        .region = region_,
                        .service = service.name};
  milliseconds pause = kThrottlePause;
  for (int sent = 0;;) {
    const HttpResponse response = TRY(send(*http_, request).at(what));
    sent += response.tries;
    auto parsed = parse_xml(response.body);
    if (response.status / 100 == 2) {
      if (!parsed) return std::move(parsed).at(what).error();
      return Ec2Answer{.body = *std::move(parsed)};
    }
    const XmlElement* said = parsed ? error_of(*parsed) : nullptr;
    Ec2Answer answer;
    answer.refused = said == nullptr ? fmt::format("status {}", response.status) : said->text_of("Code");
    answer.error = explain(service, action, response, said == nullptr ? XmlElement{} : *said);
    if (!is_throttle(answer.refused) || sent >= tries_) return answer;
    if (cancelled_ && cancelled_()) return job_failed("{}: interrupted", what);
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kThrottlePauseMax);
  }
}

Result<Ec2Answer> AwsApi::ask_of_new(const std::string& action, const Ec2Form& form,
                                     const std::function<bool(const std::string& refused)>& is_unknown) {
  Patience patience(Patience::Clock::now() + to_be_known_, cancelled_);
  while (true) {
    Ec2Answer answer = TRY(ask(action, form));
    if (answer.refused.empty() || !is_unknown(answer.refused) || patience.is_over()) return answer;
    TRY(patience.pause().at("EC2 " + action));
  }
}

Result<XmlElement> AwsApi::call(const std::string& action, const Ec2Form& form) {
  Ec2Answer answer = TRY(ask(action, form));
  if (!answer.refused.empty()) return answer.error;
  return std::move(answer.body);
}

Result<std::vector<XmlElement>> AwsApi::list(const std::string& action, const std::string& set, const Ec2Form& form) {
  std::vector<XmlElement> items;
  std::string token;
  for (int page = 0; page < kPagesMax; ++page) {
    Ec2Form each = form;
    if (!token.empty()) each.set("NextToken", token);
    XmlElement body = TRY(call(action, each));
    for (XmlElement& child : body.children) {
      if (child.name != set) continue;
      for (XmlElement& item : child.children) items.push_back(std::move(item));
    }
    token = body.text_of("nextToken");
    if (token.empty()) return items;
  }
  return corrupt("EC2 {}: a list without an end", action);
}

Result<JsonValue> AwsApi::ask_json(const std::string& service, const std::string& region, const std::string& target,
                                   const std::string& body) {
  // Of Amazon's own the host is not always called like the service that is signed for.
  const std::string host_word = service == "pricing" ? "api.pricing" : service;
  std::string url = TRY(aws_endpoint(environment_, upper(service)));
  if (url.empty()) url = "https://" + amazon_host(host_word, region);
  const Request request{.url = url,
                        .host = host_to_sign(url),
                        .headers = {{"content-type", "application/x-amz-json-1.1"}, {"x-amz-target", target}},
                        .body = body,
                        .region = region,
                        .service = service};
  const HttpResponse response = TRY(send(*hasty_http_, request));
  auto said = JsonValue::parse(response.body);
  if (response.status == 200 && said) return said;
  const std::string type = said ? (*said)["__type"].text() : "";
  const std::string code = type.substr(type.find('#') + 1);
  if (is_denial(code)) {
    const std::string& message = (*said)[(*said)["Message"].text().empty() ? "message" : "Message"].text();
    return denied(source_of_keys(), permission_in(message, service, target.substr(target.rfind('.') + 1)));
  }
  return unavailable("{} answers with status {} {}", request.host, response.status, code);
}

std::string AwsApi::source_of_keys() const {
  const auto keys = credentials_->get();
  return keys ? keys->source : "nowhere";
}

Error AwsApi::explain(const FormService& service, const std::string& action, const HttpResponse& response,
                      const XmlElement& said) {
  const std::string code = said.text_of("Code");
  const std::string message = said.text_of("Message").substr(0, kWordsMax);
  const std::string source = source_of_keys();
  if (is_denial(code)) return denied(source, permission_in(message, service.name, action));
  if (code == "AuthFailure" || code == "SignatureDoesNotMatch" || code == "InvalidClientTokenId" ||
      code == "IncompleteSignature") {
    return invalid("{} does not accept the keys (they come from {}): {}", host_of(service.url), source, message);
  }
  if (code == "RequestExpired")
    return invalid("{} takes the request for too old: set the clock of this machine", service.words);
  if (code == "ExpiredToken" || code == "InvalidToken") {
    return invalid("the session token is wrong or has expired: get new keys (these come from {})", source);
  }
  const std::string words = fmt::format("{}{}{}", code, code.empty() || message.empty() ? "" : ": ", message);
  if (response.status >= 500 || response.status == 429 || is_throttle(code)) {
    return unavailable("{} {}: status {} {} ({} tries)", service.words, action, response.status, words, response.tries);
  }
  return job_failed("{} {}: status {} {}", service.words, action, response.status, words);
}

}  // namespace pscloud

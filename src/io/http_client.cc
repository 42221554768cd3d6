#include "io/http_client.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <thread>

#include "base/log.h"
#include "io/http_client_curl.h"
#include "net/sigpipe.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;

constexpr size_t kHeadersMax = 200;
constexpr size_t kHeaderBytesMax = 16 << 10;
constexpr milliseconds kFirstPause{100};
constexpr milliseconds kPauseMax{5000};
constexpr milliseconds kPauseStep{20};
constexpr int kTriesToResolve = 3;  // a name that is not known is mostly one that is wrong
constexpr int kTriesUntold = 3;
constexpr int kTriesToPutAway = 3;

// What the callbacks of one try work on.
struct Exchange {
  HttpResponse response;
  uint64_t bytes_max = 0;
  bool too_long = false;
  std::function<bool()> ended;
};

size_t on_body(char* data, size_t, size_t size, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  exchange.too_long = exchange.response.body.size() + size > exchange.bytes_max;
  if (exchange.too_long) return 0;
  exchange.response.body.append(data, size);
  return size;
}

size_t on_header(char* data, size_t, size_t size, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  std::string_view line(data, size);
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) exchange.response.headers.clear();  // what a redirection or "100 Continue" said
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size;
  exchange.too_long = exchange.response.headers.size() == kHeadersMax || size > kHeaderBytesMax;
  if (exchange.too_long) return 0;
  std::string name(line.substr(0, colon));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ', colon + 1)));
  exchange.response.headers.emplace_back(std::move(name), line);
  return size;
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Exchange*>(user)->ended() ? 1 : 0;
}

bool status_may_pass(int status) {
  return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

// How often to try after such a failure; 1: it will not pass.
int tries_after(CURLcode code, int tries) {
  if (!may_pass(code)) return 1;
  const bool no_name = code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY;
  return no_name ? std::min(tries, kTriesToResolve) : tries;
}

CURLcode perform(CurlHandle& handle, const HttpRequest& request, const HttpOptions& options, Exchange& exchange) {
  handle.prepare(request, options);
  handle.set(CURLOPT_WRITEFUNCTION, on_body);
  handle.set(CURLOPT_WRITEDATA, &exchange);
  handle.set(CURLOPT_HEADERFUNCTION, on_header);
  handle.set(CURLOPT_HEADERDATA, &exchange);
  handle.set(CURLOPT_XFERINFOFUNCTION, on_progress);
  handle.set(CURLOPT_XFERINFODATA, &exchange);
  handle.set(CURLOPT_NOPROGRESS, 0L);
  const SigpipeBlock no_sigpipe;
  const CURLcode code = curl_easy_perform(handle.get());
  exchange.response.status = handle.status();
  return code;
}

}  // namespace

std::string HttpResponse::header(std::string_view name) const {
  const auto found = std::ranges::find(headers, name, [](const auto& one) -> std::string_view { return one.first; });
  return found == headers.end() ? "" : found->second;
}

HttpClient::HttpClient(HttpOptions options) : options_(std::move(options)), random_(Random::from_system()) {}

HttpClient::~HttpClient() = default;

std::unique_ptr<CurlHandle> HttpClient::take_handle() {
  MutexLock lock(mutex_);
  if (idle_.empty()) return std::make_unique<CurlHandle>();
  auto handle = std::move(idle_.back());
  idle_.pop_back();
  return handle;
}

void HttpClient::give_back(std::unique_ptr<CurlHandle> handle) {
  MutexLock lock(mutex_);
  idle_.push_back(std::move(handle));
}

bool HttpClient::wants_no_more(const HttpRequest& request, const std::stop_token& stop) const {
  return stop.stop_requested() || (!request.must_end && options_.cancelled && options_.cancelled());
}

// Twice as long each time, and by chance up to half less, so that those who failed together do not come back together.
milliseconds HttpClient::pause_before(int next_try) {
  const milliseconds most = std::min(kPauseMax, kFirstPause * (1 << std::min(next_try - 2, 10)));
  MutexLock lock(mutex_);
  return milliseconds(most.count() / 2 + static_cast<int64_t>(random_.below(static_cast<uint64_t>(most.count() / 2))));
}

bool HttpClient::pause(milliseconds time, const HttpRequest& request, const std::stop_token& stop) const {
  for (; time > milliseconds(0); time -= kPauseStep) {
    if (wants_no_more(request, stop)) return false;
    std::this_thread::sleep_for(std::min(time, kPauseStep));
  }
  return !wants_no_more(request, stop);
}

Result<HttpResponse> HttpClient::send(const HttpRequest& request, const Prepare& prepare, std::stop_token stop) {
  const std::string host = options_.peer.empty() ? std::string(host_of(request.url)) : options_.peer;
  const int tries_allowed = request.must_end ? std::min(options_.tries, kTriesToPutAway) : options_.tries;
  for (int tries = 1;; ++tries) {
    HttpRequest prepared = request;
    if (prepare) TRY(prepare(prepared));
    Exchange exchange;
    exchange.bytes_max = request.response_bytes_max;
    exchange.ended = [&] { return wants_no_more(request, stop); };
    auto handle = take_handle();
    const CURLcode code = perform(*handle, prepared, options_, exchange);
    const std::string why = handle->why(code);
    give_back(std::move(handle));
    exchange.response.tries = tries;
    if (wants_no_more(request, stop)) return job_failed("{}: interrupted", host);
    if (exchange.too_long) return corrupt("{} answers with more than {} bytes", host, request.response_bytes_max);

    const bool answered = code == CURLE_OK;
    const int tries_max =
        answered ? (status_may_pass(exchange.response.status) ? tries_allowed : 1) : tries_after(code, tries_allowed);
    const std::string what = answered ? fmt::format("status {}", exchange.response.status) : why;
    if (tries >= tries_max) {
      if (answered) return std::move(exchange.response);
      const std::string tried = tries > 1 ? fmt::format(" ({} tries)", tries) : "";
      if (code == CURLE_OPERATION_TIMEDOUT) return timed_out("{} does not answer: {}{}", host, what, tried);
      if (may_pass(code)) return unavailable("{} cannot be reached: {}{}", host, what, tried);
      return job_failed("{}: {}", host, what);
    }
    if (tries >= kTriesUntold) log_warning("{}: {}; tries again ({} of {})", host, what, tries + 1, tries_max);
    if (!pause(pause_before(tries + 1), request, stop)) return job_failed("{}: interrupted", host);
  }
}

std::string_view host_of(std::string_view url) {
  const size_t scheme = url.find("://");
  if (scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
  return url.substr(0, url.find_first_of("/?#"));
}

}  // namespace pscloud

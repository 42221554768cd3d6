#include "io/http_client_streams.h"

#include <algorithm>

#include "base/check.h"
#include "io/http_client_curl.h"
#include "net/sigpipe.h"

namespace pscloud {
namespace {

constexpr std::chrono::seconds kForEver{1000000};
constexpr int kWaitMsMax = 60000;

}  // namespace

struct HttpStreams::Stream {
  CurlHandle handle;
  HttpRequest request;
  std::string bytes;  // that have come since the last wait()
};

struct HttpStreams::Multi {
  Multi() : curl(curl_multi_init()) { CHECK(curl != nullptr, "libcurl gives no multi handle"); }
  ~Multi() { curl_multi_cleanup(curl); }
  Multi(const Multi&) = delete;
  Multi& operator=(const Multi&) = delete;

  CURLM* curl;
};

HttpStreams::HttpStreams(HttpOptions options) : options_(std::move(options)), multi_(std::make_unique<Multi>()) {}

HttpStreams::~HttpStreams() {
  while (!streams_.empty()) close(streams_.begin()->first);
}

uint64_t HttpStreams::open(HttpRequest request) {
  auto stream = std::make_unique<Stream>();
  stream->request = std::move(request);
  stream->request.stall = kForEver;  // silence is no fault
  stream->handle.prepare(stream->request, options_);
  const auto on_bytes = [](char* data, size_t, size_t size, void* user) -> size_t {
    static_cast<Stream*>(user)->bytes.append(data, size);
    return size;
  };
  stream->handle.set(CURLOPT_WRITEFUNCTION, +on_bytes);
  stream->handle.set(CURLOPT_WRITEDATA, stream.get());
  CHECK(curl_multi_add_handle(multi_->curl, stream->handle.get()) == CURLM_OK);
  streams_.emplace(next_, std::move(stream));
  return next_++;
}

void HttpStreams::close(uint64_t stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  const SigpipeBlock no_sigpipe;
  curl_multi_remove_handle(multi_->curl, found->second->handle.get());
  streams_.erase(found);
}

void HttpStreams::collect(std::vector<Event>& events) {
  const SigpipeBlock no_sigpipe;
  int running = 0;
  CHECK(curl_multi_perform(multi_->curl, &running) == CURLM_OK);
  for (auto& [number, stream] : streams_) {
    if (stream->bytes.empty()) continue;
    events.push_back({.stream = number, .bytes = std::move(stream->bytes), .status = stream->handle.status()});
    stream->bytes.clear();
  }
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_->curl, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    const auto found = std::ranges::find_if(
        streams_, [&](const auto& entry) { return entry.second->handle.get() == message->easy_handle; });
    if (found == streams_.end()) continue;
    events.push_back({.stream = found->first,
                      .ended = true,
                      .status = found->second->handle.status(),
                      .error = code == CURLE_OK ? "" : found->second->handle.why(code)});
    close(found->first);
  }
}

std::vector<HttpStreams::Event> HttpStreams::wait(std::chrono::steady_clock::time_point deadline, int wake_fd) {
  std::vector<Event> events;
  while (true) {
    collect(events);
    const auto now = std::chrono::steady_clock::now();
    if (!events.empty() || now >= deadline) return events;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count();
    curl_waitfd wake{.fd = wake_fd, .events = CURL_WAIT_POLLIN, .revents = 0};
    CHECK(curl_multi_poll(multi_->curl, &wake, wake_fd >= 0 ? 1 : 0,
                          static_cast<int>(std::min<int64_t>(left, kWaitMsMax)), nullptr) == CURLM_OK);
    if (wake.revents != 0) return events;
  }
}

}  // namespace pscloud

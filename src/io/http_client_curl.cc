#include "io/http_client_curl.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

#include "base/random.h"

namespace pscloud {
namespace {

constexpr long kBytesPerSecondMin = 1024;
constexpr long kRedirectsMax = 5;
constexpr const char* kSocketFolder = "/tmp";  // a longer one would not fit everywhere

void start_curl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  CHECK(started == CURLE_OK, "libcurl does not start: {}", curl_easy_strerror(started));
}

}  // namespace

bool may_pass(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR: return true;
    default: return false;
  }
}

CurlHandle::CurlHandle() {
  start_curl();
  curl_ = curl_easy_init();
  CHECK(curl_ != nullptr, "libcurl gives no handle");
}

CurlHandle::~CurlHandle() {
  stop_listening();
  curl_easy_cleanup(curl_);
  curl_slist_free_all(lines_);
}

// libcurl 7.88 takes no sockets that are connected already, so it gets one of ours to connect to. One with a name in
// the file system: connections to others it never uses again. The file is there only from here to on_connected().
void CurlHandle::listen() {
  stop_listening();
  if (listener_path_.empty()) {
    listener_path_ = fmt::format("{}/pscloud-{:016x}", kSocketFolder, Random::from_system().next());
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  CHECK(listener_path_.size() < sizeof address.sun_path);
  listener_path_.copy(address.sun_path, listener_path_.size());
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (listener_ && ::fchmod(listener_.get(), 0600) == 0 && ::bind(listener_.get(), generic, sizeof address) == 0 &&
      ::listen(listener_.get(), 1) == 0) {
    return;
  }
  // libcurl finds nobody there, and why() says the reason.
  no_connection_ = fmt::format("cannot make the socket {}: {}", listener_path_, errno_text(errno));
  listener_ = Fd();
}

void CurlHandle::stop_listening() {
  if (listener_) ::unlink(listener_path_.c_str());
  listener_ = Fd();
}

// Before each request. A connection that is used again waits for nobody here.
int CurlHandle::on_connected(void* user, char*, char*, int, int) {
  auto& handle = *static_cast<CurlHandle*>(user);
  // Of this user's: nobody else could connect.
  Fd connection(::accept4(handle.listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  handle.stop_listening();
  if (!connection) return CURL_PREREQFUNC_OK;
  const auto carried = handle.options_->carry(std::move(connection));
  if (carried) return CURL_PREREQFUNC_OK;
  handle.no_connection_ = carried.error().message;
  return CURL_PREREQFUNC_ABORT;
}

void CurlHandle::prepare(const HttpRequest& request, const HttpOptions& options) {
  curl_easy_reset(curl_);  // but its connections
  complaint_.fill('\0');
  no_connection_.clear();
  options_ = &options;
  set(CURLOPT_ERRORBUFFER, complaint_.data());
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, request.url.starts_with("https:") ? "https" : "http,https");
  set(CURLOPT_FOLLOWLOCATION, request.follow ? 1L : 0L);
  set(CURLOPT_MAXREDIRS, kRedirectsMax);
  set(CURLOPT_PATH_AS_IS, 1L);  // ".." may be part of a key
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout.count()));
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(options.total_timeout.count()));
  set(CURLOPT_LOW_SPEED_LIMIT, kBytesPerSecondMin);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.stall.count()));
  if (!options.ca_file.empty()) set(CURLOPT_CAINFO, options.ca_file.c_str());
  if (!options.ca_pem.empty()) set_blob(CURLOPT_CAINFO_BLOB, options.ca_pem);
  if (!options.certificate_pem.empty()) {
    set_blob(CURLOPT_SSLCERT_BLOB, options.certificate_pem);
    set_blob(CURLOPT_SSLKEY_BLOB, options.key_pem);
  }
  if (!options.proxy) set(CURLOPT_PROXY, "");
  if (!options.unix_socket.empty()) set(CURLOPT_UNIX_SOCKET_PATH, options.unix_socket.c_str());
  if (options.carry) {
    listen();
    set(CURLOPT_UNIX_SOCKET_PATH, listener_path_.c_str());
    set(CURLOPT_PREREQFUNCTION, on_connected);
    set(CURLOPT_PREREQDATA, this);
  }
  set_body(request);
  set_headers(request);
}

void CurlHandle::set_blob(CURLoption option, const std::string& bytes) {
  curl_blob blob{.data = const_cast<char*>(bytes.data()), .len = bytes.size(), .flags = CURL_BLOB_NOCOPY};
  set(option, &blob);
}

void CurlHandle::set_body(const HttpRequest& request) {
  if (request.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (!request.body.empty() || request.method == "PUT" || request.method == "POST") {
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());  // not copied
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  } else {
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
}

void CurlHandle::set_headers(const HttpRequest& request) {
  curl_slist_free_all(lines_);
  lines_ = curl_slist_append(nullptr, "Expect:");  // costs a round, and some servers a second of silence
  bool typed = false;
  for (const auto& [name, value] : request.headers) {
    lines_ = curl_slist_append(lines_, fmt::format("{}: {}", name, value).c_str());
    typed = typed || name == "content-type";
  }
  if (!typed) lines_ = curl_slist_append(lines_, "Content-Type:");  // or curl takes the body for a form
  set(CURLOPT_HTTPHEADER, lines_);
}

int CurlHandle::status() const {
  long status = 0;
  curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &status);
  return static_cast<int>(status);
}

std::string CurlHandle::why(CURLcode code) const {
  if (!no_connection_.empty()) return no_connection_;
  return complaint_[0] != '\0' ? complaint_.data() : curl_easy_strerror(code);
}

}  // namespace pscloud

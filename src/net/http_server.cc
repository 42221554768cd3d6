#include "net/http_server.h"

#include <httplib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/queue.h"
#include "base/text.h"
#include "net/address.h"
#include "net/http_connection.h"
#include "net/sigpipe.h"
#include "net/unix_socket.h"

namespace pscloud {
namespace {

constexpr int kThreads = 4;  // beside those that write streams
constexpr int kUnixNames = 1000;
constexpr uint64_t kWaitingMax = 16;
constexpr Duration kRequestTime = std::chrono::seconds(5);
constexpr Duration kAnswerTime = std::chrono::seconds(30);

// What a page of ours may do; other answers need nothing of it. Scripts and styles are files of ours only.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// A socket in `folder`, which ends with a slash, by the first number that is free: nodes of one task share the folder.
Result<std::pair<Fd, std::string>> listen_in_folder(const std::string& folder) {
  for (int i = 0; i < kUnixNames; ++i) {
    std::string path = fmt::format("{}{}", folder, i);
    auto socket = listen_at_path(path);
    if (socket) return std::pair(*std::move(socket), std::move(path));
    if (socket.error().code != Code::kInvalid) return socket.error();
  }
  return unavailable("no name is free in '{}'", folder);
}

// A fixed number of threads and a bounded queue; a full one stops the accepting of more.
class Workers final : public httplib::TaskQueue {
 public:
  explicit Workers(int threads) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this] {
        SigpipeBlock::for_thread();
        for (bool last = false; !last;) {
          last = tasks_.closed();  // before the pop: what was pushed before close() must still be done
          std::function<void()> task;
          while (tasks_.pop(task, std::chrono::seconds(1))) task();
        }
      });
    }
  }

  // Never fails: a task that was dropped would leave its socket open. Every task ends by its deadline.
  void enqueue(std::function<void()> task) override {
    while (!tasks_.push(task, 1, std::chrono::seconds(1))) CHECK(!tasks_.closed());
  }

  void shutdown() override {
    tasks_.close();
    threads_.clear();
  }

 private:
  BoundedQueue<std::function<void()>> tasks_{kWaitingMax};
  std::vector<std::jthread> threads_;
};

class SinkStream final : public HttpStream {
 public:
  SinkStream(httplib::DataSink& sink, const HttpConnection& connection) : sink_(sink), connection_(connection) {}

  bool write(std::string_view bytes) override { return bytes.empty() || sink_.write(bytes.data(), bytes.size()); }
  bool pause(std::chrono::milliseconds time) override { return connection_.pause(time); }

 private:
  httplib::DataSink& sink_;
  const HttpConnection& connection_;
};

bool same_letters(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

HttpCall call_of(const httplib::Request& request, bool secure) {
  HttpCall call;
  call.method = request.method;
  call.path = request.path;
  call.query.assign(request.params.begin(), request.params.end());
  call.headers.assign(request.headers.begin(), request.headers.end());
  call.secure = secure;
  return call;
}

// The library parses what is asked and writes the answer; bodies are read here, since it would take them apart as
// forms and unpack them as they say.
class CallServer final : public httplib::Server {
 public:
  CallServer(HttpServerOptions options, HttpHandler handler, std::unique_ptr<HttpTls> tls, int stop_event)
      : options_(std::move(options)), handler_(std::move(handler)), tls_(std::move(tls)), stop_event_(stop_event) {
    new_task_queue = [this] { return new Workers(kThreads + options_.streams_max); };
    set_default_headers({{"Cache-Control", "no-store"},
                         {"Content-Security-Policy", kPolicy},
                         {"Referrer-Policy", "no-referrer"},
                         {"X-Content-Type-Options", "nosniff"}});
    // Not the library's SO_REUSEPORT, which would let two nodes share a port without a word.
    set_socket_options([](socket_t socket) {
      const int on = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
    set_tcp_nodelay(true);
    // Before any body is read, and for every method.
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      give(answer(request), response);
      return HandlerResponse::Handled;
    });
  }

  // In the place of bind_to_port(): the library knows no unix sockets.
  void listen_with(Fd socket) { svr_sock_ = socket.release(); }

 private:
  HttpReply answer(const httplib::Request& request) {
    HttpCall call = call_of(request, tls_ != nullptr);
    if (call.method == "POST") {
      if (auto wrong = read_body(call)) return *std::move(wrong);
    }
    try {
      return handler_(call);
    } catch (const std::exception& error) {
      log_error("{} failed: {}", escape_controls(call.path), error.what());
    } catch (...) {
      log_error("{} failed", escape_controls(call.path));
    }
    return {500, HttpReply().content_type, "this failed; the log says why\n"};
  }

  std::optional<HttpReply> read_body(HttpCall& call) {
    if (call.find_header("Transfer-Encoding") != nullptr) {
      return HttpReply{411, HttpReply().content_type, "say the length of the body\n"};
    }
    const std::string* length = call.find_header("Content-Length");
    uint64_t bytes = 0;
    if (length != nullptr && !parse_number<uint64_t>(*length, 0, UINT64_MAX, bytes)) {
      return HttpReply{400, HttpReply().content_type, "the length of the body is none\n"};
    }
    if (bytes > options_.body_bytes_max) {
      return HttpReply{413, HttpReply().content_type,
                       fmt::format("the body may have {} bytes\n", options_.body_bytes_max)};
    }
    call.body.resize(bytes);
    for (size_t at = 0; at < bytes;) {
      const ssize_t count = connection_->read(call.body.data() + at, bytes - at);
      if (count <= 0) return HttpReply{408, HttpReply().content_type, "the body did not come\n"};
      at += static_cast<size_t>(count);
    }
    return std::nullopt;
  }

  void give(HttpReply reply, httplib::Response& response) {
    HttpConnection* connection = connection_;
    connection->set_time(kAnswerTime);
    std::shared_ptr<void> place;
    if (reply.stream) {
      if (++streams_ > options_.streams_max) {
        --streams_;
        reply = {503, HttpReply().content_type, "too many streams are open; close one\n", {{"Retry-After", "5"}}};
      } else {
        place = std::shared_ptr<void>(nullptr, [this](void*) { --streams_; });
      }
    }
    response.status = reply.status;
    for (const auto& [name, value] : reply.headers) response.set_header(name, value);
    if (!reply.stream || reply.stream_bytes == 0) {
      response.set_content(reply.body, reply.content_type);
      return;
    }
    connection->renew_by_writing(HttpServer::kStreamTime);
    auto write = [connection, place, stream = std::move(reply.stream)](httplib::DataSink& sink) {
      SinkStream out(sink, *connection);
      stream(out);
    };
    if (reply.stream_bytes) {
      // One that writes less than it has said ends the connection.
      response.set_content_provider(*reply.stream_bytes, reply.content_type,
                                    [write, done = false](size_t, size_t, httplib::DataSink& sink) mutable {
                                      if (std::exchange(done, true)) return false;
                                      write(sink);
                                      return true;
                                    });
    } else {
      response.set_chunked_content_provider(reply.content_type, [write](size_t, httplib::DataSink& sink) {
        write(sink);
        sink.done();
        return true;
      });
    }
  }

  bool process_and_close_socket(socket_t socket) override {
    try {
      HttpConnection connection(socket, stop_event_, tls_.get(), kRequestTime);
      if (!connection.handshake()) return false;
      connection_ = &connection;
      bool closed = false;
      return process_request(connection, true, closed, [](httplib::Request& request) {
        // A few bytes may ask for the same body a thousand times, as ranges of it: whoever has ranges reads the header.
        request.ranges.clear();
        request.headers.erase("Accept-Encoding");  // a stream must not wait until there is enough to pack
      });
    } catch (const std::exception& error) {
      log_error("an HTTP request failed: {}", error.what());
    }
    return false;
  }

  // That of the request this thread is at: the library does not hand it on.
  static thread_local HttpConnection* connection_;

  const HttpServerOptions options_;
  const HttpHandler handler_;
  const std::unique_ptr<HttpTls> tls_;
  const int stop_event_;
  std::atomic<int> streams_ = 0;
};

thread_local HttpConnection* CallServer::connection_ = nullptr;

HttpReply answer_route(const HttpRoutes& routes, const HttpCall& call) {
  if (call.method != "GET" && call.method != "HEAD") {
    return {405, HttpReply().content_type, "only GET and HEAD\n", {{"Allow", "GET, HEAD"}}};
  }
  if (const auto route = routes.find(call.path); route != routes.end()) return route->second();
  std::string body = fmt::format("there is no {}; there is\n", escape_controls(call.path));
  for (const auto& [path, handler] : routes) body += fmt::format("  {}\n", path);
  return {404, HttpReply().content_type, std::move(body)};
}

}  // namespace

const std::string* HttpCall::find_header(std::string_view name) const {
  const auto found = std::ranges::find_if(headers, [&](const auto& field) { return same_letters(field.first, name); });
  return found == headers.end() ? nullptr : &found->second;
}

const std::string* HttpCall::find_query(std::string_view name) const {
  const auto found = std::ranges::find_if(query, [&](const auto& field) { return field.first == name; });
  return found == query.end() ? nullptr : &found->second;
}

class HttpServer::Impl {
 public:
  Impl(const HttpServerOptions& options, HttpHandler handler, std::unique_ptr<HttpTls> tls)
      : server_(options, std::move(handler), std::move(tls), stop_event_) {
    CHECK(stop_event_ >= 0, "eventfd: {}", std::strerror(errno));
  }
  ~Impl() {
    stop();
    ::close(stop_event_);
  }

  Result<> start(const std::string& text) {
    TRY(text.starts_with(kUnix) ? bind_unix(text.substr(kUnix.size())) : bind_port(text));
    MutexLock lock(mutex_);
    thread_ = std::jthread([this] {
      server_.listen_after_bind();
      ended_ = true;
    });
    // The library's stop() does nothing before this.
    while (!server_.is_running() && !ended_) std::this_thread::yield();
    return {};
  }

  void stop() {
    MutexLock lock(mutex_);
    if (!thread_.joinable()) return;
    const uint64_t one = 1;
    CHECK(::write(stop_event_, &one, sizeof one) == sizeof one, "eventfd: {}", std::strerror(errno));
    server_.stop();
    thread_.join();
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  const std::string& address() const { return address_; }

 private:
  static constexpr std::string_view kUnix = "unix:";

  Result<> bind_unix(const std::string& folder) {
    if (!folder.starts_with('/') || !folder.ends_with('/')) {
      return invalid("'unix:{}' is no folder for a socket: unix:/path/of/folder/", folder);
    }
    auto [socket, path] = TRY(listen_in_folder(folder));
    server_.listen_with(std::move(socket));
    path_ = std::move(path);
    address_ = fmt::format("{}{}", kUnix, path_);
    return {};
  }

  Result<> bind_port(const std::string& text) {
    Address address = TRY(parse_address(text));
    errno = 0;
    const int port = address.port == 0                                  ? server_.bind_to_any_port(address.host)
                     : server_.bind_to_port(address.host, address.port) ? address.port
                                                                        : -1;
    if (port <= 0) {
      return unavailable("cannot serve HTTP at {}: {}; choose another host or port", text,
                         errno != 0 ? std::strerror(errno) : "no such host");
    }
    address.port = static_cast<uint16_t>(port);
    address_ = address.text();
    return {};
  }

  const int stop_event_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);  // readable for ever once stop() was called
  CallServer server_;
  std::string address_;
  std::string path_;  // of a unix socket; else empty
  std::atomic<bool> ended_ = false;

  Mutex mutex_;
  std::jthread thread_ GUARDED_BY(mutex_);
};

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerOptions& options, HttpHandler handler) {
  std::unique_ptr<HttpTls> tls;
  if (!options.certificate_file.empty()) tls = TRY(HttpTls::load(options.certificate_file, options.key_file));
  auto impl = std::make_unique<Impl>(options, std::move(handler), std::move(tls));
  TRY(impl->start(options.address));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(const std::string& address, HttpRoutes routes) {
  HttpServerOptions options;
  options.address = address;
  return start(options, [routes = std::move(routes)](const HttpCall& call) { return answer_route(routes, call); });
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

const std::string& HttpServer::address() const { return impl_->address(); }
void HttpServer::stop() { impl_->stop(); }

}  // namespace pscloud

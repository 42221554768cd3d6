#include "net/http_server.h"

#include <fcntl.h>
#include <httplib.h>
#include <poll.h>
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
#include "net/unix_socket.h"

namespace pscloud {
namespace {

constexpr int kThreads = 4;
constexpr int kUnixNames = 1000;
constexpr uint64_t kWaitingMax = 16;
constexpr size_t kHttpBodyMax = 4096;
constexpr Duration kConnectionTime = std::chrono::seconds(5);

// One connection. The library's own stream gives each byte a new time limit, so a client that trickles could hold a
// thread and stop() for hours; here the connection has one deadline, and stop() ends it at once.
class DeadlineStream final : public httplib::Stream {
 public:
  DeadlineStream(int socket, int stop_event)
      : socket_(socket), stop_event_(stop_event), deadline_(clock_.now() + kConnectionTime) {}

  bool is_readable() const override { return at_ < size_ || wait(POLLIN); }
  bool is_writable() const override { return wait(POLLOUT); }

  // Through a buffer, because the library reads headers byte by byte.
  ssize_t read(char* to, size_t size) override {
    if (at_ == size_) {
      if (!wait(POLLIN)) return -1;
      const ssize_t count = ::recv(socket_, buffer_, sizeof buffer_, 0);
      if (count <= 0) return count;
      at_ = 0;
      size_ = static_cast<size_t>(count);
    }
    const size_t count = std::min(size, size_ - at_);
    std::memcpy(to, buffer_ + at_, count);
    at_ += count;
    return static_cast<ssize_t>(count);
  }

  ssize_t write(const char* from, size_t size) override {
    return wait(POLLOUT) ? ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT) : -1;
  }

  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();  // nobody asks
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override { get_remote_ip_and_port(ip, port); }
  socket_t socket() const override { return socket_; }

 private:
  bool wait(short events) const {
    while (true) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - clock_.now());
      pollfd files[] = {{socket_, events, 0}, {stop_event_, POLLIN, 0}};
      if (left.count() <= 0) return false;
      const int ready = ::poll(files, 2, static_cast<int>(left.count()));
      if (ready < 0 && errno == EINTR) continue;
      return ready > 0 && files[1].revents == 0;
    }
  }

  const int socket_;
  const int stop_event_;
  const SystemClock clock_;
  const Time deadline_;
  char buffer_[4096];
  size_t at_ = 0;
  size_t size_ = 0;
};

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
  Workers() {
    for (int i = 0; i < kThreads; ++i) {
      threads_.emplace_back([this] {
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

class GetServer final : public httplib::Server {
 public:
  GetServer(HttpRoutes routes, int stop_event) : routes_(std::move(routes)), stop_event_(stop_event) {
    new_task_queue = [] { return new Workers; };
    set_payload_max_length(kHttpBodyMax);
    set_default_headers({{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}});
    // Not the library's SO_REUSEPORT, which would let two nodes share a port without a word.
    set_socket_options([](socket_t socket) {
      const int on = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
    // Before any body is read, and for every method.
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      const HttpReply reply = answer(request, response);
      response.status = reply.status;
      response.set_content(reply.body, reply.content_type);
      return HandlerResponse::Handled;
    });
  }

  // In the place of bind_to_port(): the library knows no unix sockets.
  void listen_with(Fd socket) { svr_sock_ = socket.release(); }

 private:
  HttpReply answer(const httplib::Request& request, httplib::Response& response) {
    if (request.method != "GET" && request.method != "HEAD") {
      response.set_header("Allow", "GET, HEAD");
      return {405, HttpReply().content_type, "only GET and HEAD\n"};
    }
    const auto route = routes_.find(request.path);
    if (route == routes_.end()) {
      std::string body = fmt::format("there is no {}; there is\n", escape_controls(request.path));
      for (const auto& [path, handler] : routes_) body += fmt::format("  {}\n", path);
      return {404, HttpReply().content_type, std::move(body)};
    }
    try {
      return route->second();
    } catch (const std::exception& error) {
      log_error("{} failed: {}", route->first, error.what());
    } catch (...) {
      log_error("{} failed", route->first);
    }
    return {500, HttpReply().content_type, "this failed; the log says why\n"};
  }

  bool process_and_close_socket(socket_t socket) override {
    ::fcntl(socket, F_SETFD, FD_CLOEXEC);
    bool ok = false;
    try {
      DeadlineStream stream(socket, stop_event_);
      bool closed = false;
      // A few bytes may ask for the same body a thousand times, as ranges of it: nobody gets ranges.
      ok = process_request(stream, true, closed, [](httplib::Request& request) { request.ranges.clear(); });
    } catch (const std::exception& error) {
      log_error("an HTTP request failed: {}", error.what());
    }
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return ok;
  }

  const HttpRoutes routes_;
  const int stop_event_;
};

}  // namespace

class HttpServer::Impl {
 public:
  explicit Impl(HttpRoutes routes) : server_(std::move(routes), stop_event_) {
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
  GetServer server_;
  std::string address_;
  std::string path_;  // of a unix socket; else empty
  std::atomic<bool> ended_ = false;

  Mutex mutex_;
  std::jthread thread_ GUARDED_BY(mutex_);
};

Result<std::unique_ptr<HttpServer>> HttpServer::start(const std::string& address, HttpRoutes routes) {
  auto impl = std::make_unique<Impl>(std::move(routes));
  TRY(impl->start(address));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

const std::string& HttpServer::address() const { return impl_->address(); }
void HttpServer::stop() { impl_->stop(); }

}  // namespace pscloud

#include "launch/agent/agent_connection.h"

#include <fcntl.h>
#include <signal.h>  // NOLINT: kill() is POSIX
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>

#include "base/text.h"

namespace pscloud {
namespace {

constexpr size_t kComplaintsMax = 4096;
constexpr std::chrono::milliseconds kForItsComplaint{2000};

// The last line that says something.
std::string last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  const size_t end = text.rfind('\n');
  return escape_controls(end == std::string_view::npos ? text : text.substr(end + 1));
}

}  // namespace

AgentConnection::AgentConnection(std::string host, pid_t pid, AgentStream stream, Fd complaints)
    : host_(std::move(host)), pid_(pid), stream_(std::move(stream)), complaint_fd_(std::move(complaints)) {}

AgentConnection::AgentConnection(AgentConnection&& other) noexcept
    : host_(std::move(other.host_)),
      pid_(std::exchange(other.pid_, -1)),
      stream_(std::move(other.stream_)),
      complaint_fd_(std::move(other.complaint_fd_)),
      complaints_(std::move(other.complaints_)) {}

AgentConnection::~AgentConnection() { end(std::chrono::steady_clock::now()); }

Result<AgentConnection> AgentConnection::open(std::string host, const std::vector<std::string>& arguments,
                                              const std::vector<std::string>& environment,
                                              std::function<Result<>(pid_t)> started) {
  auto [ours, theirs] = TRY(make_socket_pair());
  int complaints[2];
  if (::pipe2(complaints, O_CLOEXEC) != 0) return unavailable("cannot make a pipe: {}", errno_text(errno));
  const Fd complaints_in(complaints[1]);
  Fd complaints_out(complaints[0]);
  ::fcntl(complaints_out.get(), F_SETFL, O_NONBLOCK);
  SpawnSpec process;
  process.program = arguments.front();
  process.arguments = arguments;
  process.environment = environment;
  process.stdin_fd = process.stdout_fd = theirs.get();
  process.stderr_fd = complaints_in.get();
  process.own_session = true;
  process.before_it_runs = std::move(started);
  const pid_t pid = TRY(spawn(process));
  return AgentConnection(std::move(host), pid, AgentStream(std::move(ours), Fd()), std::move(complaints_out));
}

void AgentConnection::add_to(std::vector<pollfd>& polled) const {
  stream_.add_to(polled);
  if (complaint_fd_) polled.push_back({complaint_fd_.get(), POLLIN, 0});
}

void AgentConnection::read_complaints() {
  std::array<char, kComplaintsMax> bytes;
  while (complaint_fd_) {
    const ssize_t count = ::read(complaint_fd_.get(), bytes.data(), bytes.size());
    if (count < 0) return;
    if (count == 0) complaint_fd_ = Fd();
    complaints_.append(bytes.data(), static_cast<size_t>(count));
    if (complaints_.size() > kComplaintsMax) complaints_.erase(0, complaints_.size() - kComplaintsMax);
  }
}

std::string AgentConnection::why() {
  // What a program says last may come a moment after its stream has ended.
  const auto deadline = std::chrono::steady_clock::now() + kForItsComplaint;
  while (complaint_fd_ && std::chrono::steady_clock::now() < deadline) {
    pollfd polled{complaint_fd_.get(), POLLIN, 0};
    ::poll(&polled, 1, 100);
    read_complaints();
  }
  std::string complaint = last_line(complaints_);
  if (!complaint.empty()) return complaint;
  return stream_.broken().value_or("it ended");
}

bool AgentConnection::has_ended() {
  if (pid_ < 0) return true;
  const pid_t ended = ::waitpid(pid_, nullptr, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return false;
  pid_ = -1;
  return true;
}

bool AgentConnection::end(std::chrono::steady_clock::time_point deadline) {
  if (pid_ < 0) return true;
  stream_.close();
  std::vector<TaskEvent> unheard;
  std::vector<JsonValue> unasked;
  while (!has_ended()) {
    if (std::chrono::steady_clock::now() >= deadline) {
      ::kill(pid_, SIGKILL);
      while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
      pid_ = -1;
      return false;
    }
    // Who still has something to say must not wait for somebody to listen.
    stream_.read(100, unheard, unasked);
    unheard.clear();
    unasked.clear();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace pscloud

#include "launch/agent/process_sampler.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>  // NOLINT: kill() is POSIX
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/fd.h"
#include "launch/process/processes.h"

namespace pscloud {
namespace {

using std::chrono::steady_clock;

double process_figure(const Figures& figures, std::string_view name) {
  const auto found = std::ranges::find(figures, name, &Figures::value_type::first);
  return found == figures.end() ? std::nan("") : found->second;
}

// A child that leads a session and says when it has done its part; then it waits to be killed.
class ChildProgram {
 public:
  explicit ChildProgram(const std::function<void()>& work) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::setsid();
      work();
      (void)!::write(ends[1], "x", 1);
      while (true) ::pause();
    }
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~ChildProgram() {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;

  SampledTask task() const { return {pid_, started_, "NO=such"}; }
  pid_t pid() const { return pid_; }

 private:
  const steady_clock::time_point started_ = steady_clock::now();
  pid_t pid_ = 0;
};

// Uses the CPU for so long, by its own account of it.
void burn(double seconds) {
  timespec used{};
  while (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0 &&
         static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9 < seconds) {
  }
}

TEST(ProcessSampler, WhatAProgramUsesIsWhatIsSeen) {
  constexpr size_t kBytes = 64 << 20;
  const ChildProgram busy([] {
    // A byte of each page: all of them would take longer under a sanitizer than what is burnt.
    auto* const memory = static_cast<volatile char*>(::malloc(kBytes));
    for (size_t i = 0; i < kBytes; i += 4096) memory[i] = 1;
    burn(0.3);
  });
  const ChildProgram idle([] {});
  ProcessSampler sampler;
  const auto now = busy.task().started + std::chrono::seconds(1);
  const std::vector<SampledTask> tasks{busy.task(), idle.task()};
  const auto figures = sampler.look(tasks, now);
  ASSERT_EQ(figures.size(), 2u);
  // 0.3 s of what is said to have been one; a tick is 0.01 s.
  EXPECT_NEAR(process_figure(figures[0], "cpu_percent"), 30, 8);
  EXPECT_LT(process_figure(figures[1], "cpu_percent"), 8);
  // Both have what the program itself takes, which under a sanitizer is much.
  EXPECT_GT(process_figure(figures[0], "memory_bytes") - process_figure(figures[1], "memory_bytes"), 0.9 * kBytes);
  EXPECT_LT(process_figure(sampler.look(tasks, now + std::chrono::seconds(1))[0], "cpu_percent"), 8)
      << "since the last look";
}

TEST(ProcessSampler, ProcessesThatLeftTheSessionStillCount) {
  const ChildProgram program([] {
    int ends[2];
    if (::pipe(ends) != 0) return;
    if (::fork() == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::setsid();
      burn(0.3);
      (void)!::write(ends[1], "x", 1);
      while (true) ::pause();
    }
    char byte = 0;
    (void)!::read(ends[0], &byte, 1);
  });
  const std::vector<SampledTask> tasks{program.task()};
  const auto figures = ProcessSampler().look(tasks, program.task().started + std::chrono::seconds(1));
  EXPECT_NEAR(process_figure(figures[0], "cpu_percent"), 30, 8);
}

// Two ends of one connection over loopback.
struct TcpPair {
  Fd near;
  Fd far;
};
TcpPair connect_both() {
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  TcpPair both;
  both.near = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(both.near.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  both.far = Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  return both;
}

void send_all(const TcpPair& connection, size_t bytes) {
  std::vector<char> data(bytes);
  ASSERT_EQ(::send(connection.near.get(), data.data(), bytes, 0), static_cast<ssize_t>(bytes));
  ASSERT_EQ(::recv(connection.far.get(), data.data(), bytes, MSG_WAITALL), static_cast<ssize_t>(bytes));
}

TEST(SocketBytes, WhatWentThroughSocketsIsCountedOnceAndStaysWhenTheyAreGone) {
  const auto told = all_tcp_sockets();
  if (!told) GTEST_SKIP() << "this kernel does not tell";
  const std::vector<pid_t> self{::getpid()};
  SocketBytes bytes;
  bytes.look(*all_tcp_sockets(), self);
  const uint64_t before_sent = bytes.sent();
  const uint64_t before_received = bytes.received();
  {
    const TcpPair connection = connect_both();
    send_all(connection, 1000);
    bytes.look(*all_tcp_sockets(), self);
    EXPECT_GE(bytes.received() - before_received, 1000u);
    send_all(connection, 500);
    bytes.look(*all_tcp_sockets(), self);
    bytes.look(*all_tcp_sockets(), self);
  }
  bytes.look(*all_tcp_sockets(), self);
  EXPECT_EQ(bytes.received() - before_received, 1500u);
  EXPECT_LE(bytes.sent() - before_sent, 1502u) << "and what began and ended the connection";
}

TEST(ProcessUses, OurOwnIsAmongThem) {
  const auto uses = all_process_uses();
  const auto found = std::ranges::find(uses, ::getpid(), &ProcessUse::pid);
  ASSERT_NE(found, uses.end());
  EXPECT_EQ(found->parent, ::getppid());
  EXPECT_EQ(found->session, ::getsid(0));
  EXPECT_GT(found->resident_pages, 100u);
}

}  // namespace
}  // namespace pscloud

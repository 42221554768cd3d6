#include "launch/process/tool.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>  // NOLINT: <csignal> does not promise kill
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "base/text.h"
#include "launch/process/processes.h"
#include "launch/process/spawn.h"
#include "net/sigpipe.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// What a tool writes is a line or a table; more than this is no answer of it.
constexpr size_t kToolBytesMax = size_t{16} << 20;
constexpr milliseconds kLookForStop{100};

struct Pipe {
  Fd read;
  Fd write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return unavailable("cannot make a pipe: {}", errno_text(errno));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

Result<pid_t> spawn_tool(const std::vector<std::string>& words, const Pipe& in, const Pipe& out, const Pipe& err) {
  SpawnSpec spec;
  spec.environment = inherited_environment();
  set_variable(spec.environment, "LC_ALL", "C");
  const auto program = find_program(words.at(0), variable_of(spec.environment, "PATH"));
  if (!program) return not_found("there is no program '{}' here (PATH was searched)", words[0]);
  spec.program = *program;
  spec.arguments = words;
  spec.stdin_fd = in.read.get();
  spec.stdout_fd = out.write.get();
  spec.stderr_fd = err.write.get();
  spec.dies_with_us = true;  // nothing is submitted any more by a launcher that was killed
  return spawn(spec);
}

// Moves bytes until both outputs have ended; false when time is over, a stop is asked for, or there is too much.
bool converse(Fd in, std::string_view input, const Fd& out, const Fd& err, steady_clock::time_point deadline,
              const std::stop_token& stop, ToolOutput& output) {
  const SigpipeBlock quiet;
  ::fcntl(in.get(), F_SETFL, O_NONBLOCK);
  std::array<pollfd, 3> polled = {{{out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}, {in.get(), POLLOUT, 0}}};
  char buffer[1 << 16];
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    if (polled[2].fd >= 0 && input.empty()) {
      in = Fd();
      polled[2].fd = -1;
    }
    auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0 || stop.stop_requested()) return false;
    if (stop.stop_possible()) left = std::min(left, kLookForStop);
    if (::poll(polled.data(), polled.size(), static_cast<int>(left.count())) < 0 && errno != EINTR) return false;
    for (const size_t which : {size_t{0}, size_t{1}}) {
      if (polled[which].fd < 0 || polled[which].revents == 0) continue;
      const ssize_t count = ::read(polled[which].fd, buffer, sizeof buffer);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        polled[which].fd = -1;
        continue;
      }
      std::string& text = which == 0 ? output.out : output.err;
      text.append(buffer, static_cast<size_t>(count));
      if (text.size() > kToolBytesMax) return false;
    }
    if (polled[2].fd >= 0 && polled[2].revents != 0) {
      const ssize_t count = ::write(polled[2].fd, input.data(), input.size());
      if (count > 0) input.remove_prefix(static_cast<size_t>(count));
      if (count < 0 && errno != EINTR && errno != EAGAIN) input = {};  // it does not want to read: its answer says why
    }
  }
  return true;
}

}  // namespace

Result<ToolOutput> run_tool(const std::vector<std::string>& words, std::string_view input,
                            std::chrono::milliseconds timeout, const std::stop_token& stop) {
  const auto deadline = steady_clock::now() + timeout;
  Pipe in = TRY(make_pipe()), out = TRY(make_pipe()), err = TRY(make_pipe());
  const pid_t pid = TRY(spawn_tool(words, in, out, err));
  in.read = Fd();
  out.write = Fd();
  err.write = Fd();
  ToolOutput output;
  // Whatever it has left behind holds its pipes open: with its end it is over in any case.
  const bool answered = converse(std::move(in.write), input, out.read, err.read, deadline, stop, output);
  if (!answered) ::kill(-pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (!answered && stop.stop_requested()) return unavailable("{} was not waited for", words[0]);
  if (!answered) {
    return timed_out("{} has not answered within {} s", words[0],
                     std::chrono::duration_cast<std::chrono::seconds>(timeout).count());
  }
  output.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return output;
}

std::vector<std::string> lines_of_tool(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r";
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t begin = line.find_first_not_of(kSpaces);
    if (begin == std::string_view::npos) continue;
    lines.emplace_back(line.substr(begin, line.find_last_not_of(kSpaces) + 1 - begin));
  }
  return lines;
}

Result<std::string> tool_answer(const std::vector<std::string>& words, std::string_view input,
                                std::chrono::milliseconds timeout) {
  ToolOutput output = TRY(run_tool(words, input, timeout));
  if (output.code == 0) return std::move(output.out);
  std::string said = output.err.empty() ? output.out : output.err;
  while (!said.empty() && (said.back() == '\n' || said.back() == ' ')) said.pop_back();
  return unavailable("{} ended with code {}: {}", words[0], output.code, escape_controls(said));
}

}  // namespace pscloud

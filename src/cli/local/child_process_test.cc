#include "cli/local/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>  // NOLINT: kill() is POSIX
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <thread>

#include "cli/local/line_channel.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kUntilAnEnd{10000};

// `sh -c script`, and the channel to it.
struct Shell {
  ChildProcess process;
  LineChannel lines;

  static Shell run(const std::string& script, const std::vector<std::string>& environment = {}) {
    auto ends = LineChannel::make_pair();
    EXPECT_TRUE(ends);
    auto process = ChildProcess::start({"-c", script}, environment, std::move(ends->second), "/bin/sh");
    EXPECT_TRUE(process);
    return {*std::move(process), LineChannel(std::move(ends->first))};
  }
};

TEST(ChildProcess, SpeaksOverItsStdinAndStdout) {
  Shell shell = Shell::run("read word; echo \"$word $GIVEN\"", {"GIVEN=2"});
  ASSERT_TRUE(shell.lines.write_line("1"));
  EXPECT_EQ(shell.lines.read_line(kUntilAnEnd).value(), "1 2");
  EXPECT_TRUE(shell.process.wait(kUntilAnEnd));
}

TEST(ChildProcess, DoesNotInheritOurSettings) {
  ::setenv("PSCLOUD_SCHEDULER", "elsewhere:1", 1);
  Shell shell = Shell::run("echo \"[$PSCLOUD_SCHEDULER]\"");
  ::unsetenv("PSCLOUD_SCHEDULER");
  EXPECT_EQ(shell.lines.read_line(kUntilAnEnd).value(), "[]");
}

TEST(ChildProcess, SaysHowItEnded) {
  const auto code = Shell::run("exit 3").process.wait(kUntilAnEnd);
  EXPECT_NE(code.error().message.find("ended with exit code 3"), std::string::npos) << code.error().message;
  const auto signal = Shell::run("kill -KILL $$").process.wait(kUntilAnEnd);
  EXPECT_NE(signal.error().message.find("was ended by Killed"), std::string::npos) << signal.error().message;
}

TEST(ChildProcess, ThatItHasEndedDoesNotTakeItsStatusAway) {
  Shell shell = Shell::run("read word; exit 3");
  EXPECT_FALSE(shell.process.has_ended());
  ASSERT_TRUE(shell.lines.write_line("go"));
  EXPECT_EQ(shell.lines.read_line(kUntilAnEnd).error().code, Code::kUnavailable);
  while (!shell.process.has_ended()) std::this_thread::yield();  // the socket closes a moment before
  EXPECT_NE(shell.process.wait(kUntilAnEnd).error().message.find("exit code 3"), std::string::npos);
  EXPECT_TRUE(shell.process.has_ended());
}

TEST(ChildProcess, IsGoneWithItsObjectAndSoIsWhatItStarted) {
  auto shell = std::make_optional(Shell::run("sleep 1000 & echo up; wait"));
  EXPECT_EQ(shell->lines.read_line(kUntilAnEnd).value(), "up");
  const pid_t pid = shell->process.pid();
  LineChannel lines = std::move(shell->lines);
  EXPECT_EQ(::kill(pid, 0), 0);
  shell.reset();
  EXPECT_EQ(::kill(pid, 0), -1);
  // The other end closes when the last process that holds it is gone.
  EXPECT_EQ(lines.read_line(kUntilAnEnd).error().code, Code::kUnavailable);
}

TEST(ChildProcess, IsGoneWithItsParentThatWasKilled) {
  // The shell's parent is a process that dies without a word: only the kernel can end the shell.
  auto ends = LineChannel::make_pair();
  ASSERT_TRUE(ends);
  const pid_t parent = ::fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    ends->first = Fd();
    auto child = ChildProcess::start({"-c", "echo up; exec sleep 1000"}, {}, std::move(ends->second), "/bin/sh");
    ::pause();
    ::_exit(0);
  }
  ends->second = Fd();
  LineChannel lines(std::move(ends->first));
  EXPECT_EQ(lines.read_line(kUntilAnEnd).value(), "up");
  ::kill(parent, SIGKILL);
  // The other end closes when the last process that holds it is gone.
  EXPECT_EQ(lines.read_line(kUntilAnEnd).error().code, Code::kUnavailable);
  ::waitpid(parent, nullptr, 0);
}

TEST(ChildProcess, TellsWhatItCosts) {
  Shell shell = Shell::run("i=0; while [ $i -lt 10000 ]; do i=$((i + 1)); done; echo done; read line");
  EXPECT_EQ(shell.lines.read_line(kUntilAnEnd).value(), "done");
  EXPECT_GT(shell.process.cpu_s(), 0);
  EXPECT_LT(shell.process.cpu_s(), 10);
  EXPECT_GT(ChildProcess::resident_bytes_of(shell.process.pid()), 1e5);
  EXPECT_GT(shell.process.own_bytes(), 1e4);
  EXPECT_LT(shell.process.own_bytes(), ChildProcess::resident_bytes_of(shell.process.pid()));
}

}  // namespace
}  // namespace pscloud

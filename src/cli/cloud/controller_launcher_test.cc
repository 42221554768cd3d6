#include "cli/cloud/controller_launcher.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <map>

#include "launch/run_folder.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;

class ControllerLauncherTest : public testing::Test {
 protected:
  ControllerLauncherTest() {
    char path[] = "/tmp/pscloud-controller-XXXXXX";
    runs_ = ::mkdtemp(path);
  }
  ~ControllerLauncherTest() override { std::filesystem::remove_all(runs_); }

  // A process that has the lock of a run, and listens to `heard` signals before it ends.
  ControllerLauncher start(int heard) {
    auto folder = RunFolder::create(runs_, "busy", true, [](const std::string& run) {
      RunState state;
      state.run = run;
      return Result<std::map<std::string, std::string>>({{"state.json", run_state_json(state)}});
    });
    EXPECT_TRUE(folder);
    sigset_t set;
    sigset_t before;
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT}) sigaddset(&set, signal);
    sigprocmask(SIG_BLOCK, &set, &before);
    const pid_t pid = ::fork();
    if (pid == 0) {
      if (!folder->write_watcher()) ::_exit(1);
      for (int signal = 0; heard > 0; --heard) sigwait(&set, &signal);
      ::_exit(0);
    }
    sigprocmask(SIG_SETMASK, &before, nullptr);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (folder->watcher() != pid && std::chrono::steady_clock::now() < deadline) ::usleep(1000);
    pid_ = pid;
    return {runs_, "busy", pid, Fd()};
  }
  bool is_gone() const { return ::kill(pid_, 0) != 0 && errno == ESRCH; }

  std::string runs_;
  pid_t pid_ = -1;
};

TEST_F(ControllerLauncherTest, OneThatListensIsGivenItsTime) {
  ControllerLauncher launcher = start(1);
  EXPECT_FALSE(launcher.has_ended());
  launcher.end({std::chrono::minutes(1), milliseconds(1)});
  EXPECT_TRUE(is_gone());
}

TEST_F(ControllerLauncherTest, OneThatTakesTooLongIsToldToBeQuick) {
  ControllerLauncher launcher = start(2);
  launcher.end({milliseconds(50), std::chrono::minutes(1)});
  EXPECT_TRUE(is_gone());
}

TEST_F(ControllerLauncherTest, OneThatListensToNothingIsKilledAndNotWaitedForForEver) {
  ControllerLauncher launcher = start(1000);
  launcher.end({milliseconds(50), milliseconds(50)});
  EXPECT_TRUE(is_gone());
  EXPECT_FALSE(RunFolder::open(runs_, "busy").value().is_watched());
}

TEST_F(ControllerLauncherTest, OneWhoseFolderIsGoneEndsTheSame) {
  ControllerLauncher launcher = start(1000);
  std::filesystem::remove_all(runs_ + "/busy");
  launcher.end({milliseconds(50), milliseconds(50)});
  EXPECT_TRUE(is_gone());
}

}  // namespace
}  // namespace pscloud

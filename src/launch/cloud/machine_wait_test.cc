#include "launch/cloud/machine_wait.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// In the place of ssh: what machines say by their addresses.
constexpr const char* kSsh = R"sh(#!/bin/sh
case "$*" in
  *ready-machine*touch*alive*state*) echo word >> "${0%/*}/words"; echo ready ;;
  *late-machine*state*) [ "$(wc -l < "${0%/*}/words")" -ge 3 ] && echo ready || echo working ;;
  *slow-machine*state*) echo working ;;
  *slow-machine*tail*) echo "Get:7 http://deb.debian.org docker.io" ;;
  *) echo "connect: Connection timed out" >&2; exit 255 ;;
esac
)sh";

class MachineWaitTest : public testing::Test {
 protected:
  MachineWaitTest() {
    char path[] = "/tmp/pscloud-wait-XXXXXX";
    folder_ = ::mkdtemp(path);
    std::ofstream(folder_ + "/ssh") << kSsh;
    std::ofstream(folder_ + "/words").flush();
    ::chmod((folder_ + "/ssh").c_str(), 0700);
    ::setenv("PATH", (folder_ + ":" + path_before_).c_str(), 1);
  }
  ~MachineWaitTest() override {
    ::setenv("PATH", path_before_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }
  static Host machine(const std::string& name) {
    Host host;
    host.name = name;
    host.address = name + "-machine";
    return host;
  }

  const std::string path_before_ = std::getenv("PATH");
  std::string folder_;
};

TEST_F(MachineWaitTest, MachinesThatAreReadyHearAWordWhileOthersAreWaitedFor) {
  MachineWaitOptions options;
  options.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  options.idle = std::chrono::milliseconds(400);
  EXPECT_TRUE(wait_for_machines({machine("ready"), machine("late")}, options));  // which waits for the others' words
}

TEST_F(MachineWaitTest, WhoIsMissingIsShownWithItsOwnLog) {
  std::vector<std::string> asked;
  MachineWaitOptions options;
  options.deadline = std::chrono::steady_clock::now();
  options.console = [&](const Host& host) {
    asked.push_back(host.name);
    return "\n  the console of " + host.name;
  };
  const auto ready = wait_for_machines({machine("ready"), machine("slow"), machine("dark")}, options);
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, Code::kTimeout);
  const std::string& text = ready.error().message;
  EXPECT_THAT(text, HasSubstr("slow (slow-machine) is being set up"));
  EXPECT_THAT(text, HasSubstr("of slow:\nGet:7 http://deb.debian.org docker.io"));
  EXPECT_THAT(text, HasSubstr("dark (dark-machine) waits for ssh"));
  EXPECT_THAT(text, HasSubstr("the console of dark"));
  EXPECT_THAT(text, Not(HasSubstr("ready (")));
  EXPECT_THAT(asked, ElementsAre("dark"));
  EXPECT_TRUE(wait_for_machines({machine("ready")}, options));
}

}  // namespace
}  // namespace pscloud

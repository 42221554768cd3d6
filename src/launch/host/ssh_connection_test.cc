#include "launch/host/ssh_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace pscloud {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Host some_host() {
  Host host;
  host.name = host.address = "10.0.0.1";
  return host;
}

TEST(SshConnection, NeverAsksForAPasswordAndAlwaysChecksTheHostKey) {
  const auto command = ssh_command(some_host(), {}, true);
  EXPECT_THAT(command, Contains("BatchMode=yes"));
  EXPECT_THAT(command, Contains("PreferredAuthentications=publickey"));
  EXPECT_THAT(command, Contains("StrictHostKeyChecking=yes"));
  EXPECT_EQ(command.back(), "10.0.0.1");
  EXPECT_EQ(command.at(command.size() - 2), "--");
  SshOptions options;
  options.accept_new_host_keys = true;
  EXPECT_THAT(ssh_command(some_host(), options, true), Contains("StrictHostKeyChecking=accept-new"));
}

TEST(SshConnection, WhatTheFileSaysOfAHostIsSaidToSsh) {
  Host host = some_host();
  host.user = "ubuntu";
  host.port = 2222;
  host.identity_file = "key.pem";
  SshOptions options;
  options.control_folder = "/run/x";
  const auto command = ssh_command(host, options, false);
  for (const char* word : {"ubuntu", "2222", "key.pem", "IdentitiesOnly=yes", "ControlMaster=no"}) {
    EXPECT_THAT(command, Contains(word));
  }
  EXPECT_THAT(ssh_command(host, {}, false), Not(Contains(HasSubstr("ControlPath"))));
}

TEST(SshConnection, ComplaintsOfSshAreExplained) {
  const auto explain = [](const char* text) { return explain_ssh(some_host(), text, "last line"); };
  EXPECT_THAT(explain("No ED25519 host key is known for 10.0.0.1 and you have requested strict checking."),
              HasSubstr("--accept-new-host-keys"));
  EXPECT_THAT(explain("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed."),
              HasSubstr("not the one that is known"));
  EXPECT_THAT(explain("x@10.0.0.1: Permission denied (publickey)."), HasSubstr("does not accept the key"));
  EXPECT_EQ(explain("ssh: connect to host 10.0.0.1 port 22: Connection refused"), "last line");
}

// Has a program of its own for ssh, which plays the host.
class SshHostTest : public testing::Test {
 protected:
  SshHostTest() : path_(std::getenv("PATH")) {
    std::string pattern = testing::TempDir() + "ssh_connection_test.XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    ::setenv("PATH", (folder_ + ":" + path_).c_str(), 1);
  }
  ~SshHostTest() override {
    ::setenv("PATH", path_.c_str(), 1);
    fs::remove_all(folder_);
  }

  // What is wrong with a host that does as `script` says, once it was told what to run; $bytes are in the bundle.
  std::string open(const std::string& script, milliseconds patience) {
    const std::string ssh = folder_ + "/ssh";
    std::ofstream(ssh) << "#!/bin/sh\nread -r hash bytes rest\n" << script;
    fs::permissions(ssh, fs::perms::owner_all);
    AgentHosts agents;
    const auto wrong = open_agents({some_host()}, {}, agents, steady_clock::now() + patience);
    EXPECT_TRUE(wrong) << wrong.error().message;
    return !wrong || wrong->empty() ? "" : wrong->at("10.0.0.1");
  }

  const std::string path_;
  std::string folder_;
};

TEST_F(SshHostTest, ASlowLineMayTakeLongForTheProgramAsLongAsItTakesSomeOfIt) {
  constexpr milliseconds kPatience{2000};
  const auto begin = steady_clock::now();
  EXPECT_EQ(open("echo pscloud-bootstrap want\n"
                 "for i in 1 2 3 4 5 6 7 8 9 10 11; do head -c $((bytes / 12)) > /dev/null; sleep 0.25; done\n"
                 "head -c $((bytes - bytes / 12 * 11)) > /dev/null\n"
                 "echo pscloud-bootstrap run\n"
                 "exec cat > /dev/null\n",
                 kPatience),
            "");
  EXPECT_GT(steady_clock::now() - begin, kPatience);
}

TEST_F(SshHostTest, AHostThatTakesNothingMoreIsGivenUp) {
  EXPECT_THAT(open("echo pscloud-bootstrap want; head -c 100000 > /dev/null; exec sleep 1000\n", milliseconds(2000)),
              HasSubstr("takes no more of this program"));
  EXPECT_EQ(open("exec sleep 1000\n", milliseconds(300)), "did not get ready in time");
}

}  // namespace
}  // namespace pscloud

#include "launch/cloud/ssh_door.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "io/scripted_http_server.h"
#include "launch/cloud/cloud_folder.h"

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A cluster that ssh reaches from an address of yesterday, and its account.
class SshDoorTest : public testing::Test {
 protected:
  SshDoorTest()
      : server_([this](const std::string& request) {
          const auto rule = [&](const char* what) {
            const size_t at = request.find("CidrIp=") + 7;
            calls_.push_back(std::string(what) + " " + request.substr(at, request.find('&', at) - at));
            return ScriptedHttpServer::text(200, "<R/>");
          };
          const auto asks = [&](const std::string& what) {
            return request.find("Action=" + what) != std::string::npos;
          };
          if (!refused_.empty() && asks(refused_)) {
            return ScriptedHttpServer::text(400, "<R><Errors><Error><Code>No</Code></Error></Errors></R>");
          }
          if (asks("Authorize")) return rule("opens");
          if (asks("Revoke")) return rule("closes");
          return ScriptedHttpServer::text(
              200, "<R><securityGroupInfo><item><groupId>sg-1</groupId></item></securityGroupInfo></R>");
        }) {
    char path[] = "/tmp/pscloud-door-XXXXXX";
    home_ = ::mkdtemp(path);
    ::setenv("PSCLOUD_HOME", home_.c_str(), 1);
    CloudState state;
    state.plan.name = "blue";
    state.plan.id = "c0ffee";
    state.plan.region = "us-east-1";
    state.plan.endpoint = server_.url();
    state.plan.ssh_from = "203.0.113.7/32";
    state.step = "up";
    EXPECT_TRUE(create_cloud_folder(state));
  }
  ~SshDoorTest() override {
    ::unsetenv("PSCLOUD_HOME");
    std::filesystem::remove_all(home_);
  }

  Result<std::string> move_to(const std::string& block) {
    return move_ssh_door("blue", block, [](const char* name) {
      const std::string_view word = name;
      return std::string(word == "AWS_ACCESS_KEY_ID" || word == "AWS_SECRET_ACCESS_KEY" ? "KEY" : "");
    });
  }
  static std::string known() { return read_cloud_state(open_cloud_folder("blue").value()).value().plan.ssh_from; }

  std::string home_;
  std::vector<std::string> calls_;
  std::string refused_;        // an action
  ScriptedHttpServer server_;  // last: it uses the others
};

TEST_F(SshDoorTest, OpensAtOnePlaceAndClosesAtTheOther) {
  const auto moved = move_to("198.51.100.0/24");
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_EQ(*moved, "198.51.100.0/24");
  EXPECT_EQ(known(), "198.51.100.0/24");
  EXPECT_THAT(calls_, ElementsAre("closes 203.0.113.7%2F32", "opens 198.51.100.0%2F24"));
  EXPECT_TRUE(move_to("198.51.100.0/24"));
  EXPECT_THAT(calls_.back(), HasSubstr("opens"));  // nothing is closed that shall be open
  EXPECT_THAT(move_to("0.0.0.0/0").error().message, HasSubstr("not the whole world"));
}

TEST_F(SshDoorTest, WhatCouldNotBeClosedIsClosedTheNextTime) {
  refused_ = "Revoke";
  EXPECT_FALSE(move_to("198.51.100.0/24"));
  EXPECT_EQ(known(), "203.0.113.7/32");
  EXPECT_THAT(calls_, IsEmpty());
  refused_ = "Authorize";
  EXPECT_THAT(move_to("198.51.100.0/24").error().message, HasSubstr("gets in from nowhere"));
  EXPECT_EQ(known(), "198.51.100.0/24") << "it may have been opened, though nobody heard of it";
  refused_ = "";
  EXPECT_TRUE(move_to("192.0.2.0/24"));
  EXPECT_THAT(calls_, ElementsAre("closes 203.0.113.7%2F32", "closes 198.51.100.0%2F24", "opens 192.0.2.0%2F24"));
}

}  // namespace
}  // namespace pscloud

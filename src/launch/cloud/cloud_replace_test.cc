#include "launch/cloud/cloud_replace.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "io/scripted_http_server.h"
#include "launch/cloud/cloud_folder.h"

namespace pscloud {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::string form_value(const std::string& request, const std::string& name) {
  const size_t at = request.find(name + "=");
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 1;
  return request.substr(begin, request.find_first_of("& \r\n", begin) - begin);
}

std::string xml(const std::string& body) { return ScriptedHttpServer::text(200, "<R>" + body + "</R>"); }

std::string refuse_by(const std::string& code, int status) {
  return ScriptedHttpServer::text(status, fmt::format("<R><Errors><Error><Code>{}</Code></Error></Errors></R>", code));
}

// A cluster with one worker, which is taken away. Machines that are asked for are made, and terminated at once: so a
// replacement is seen until then, and no ssh is needed.
class CloudReplaceTest : public testing::Test {
 protected:
  CloudReplaceTest() : server_([this](const std::string& request) { return answer(request); }) {
    char path[] = "/tmp/pscloud-replace-XXXXXX";
    home_ = ::mkdtemp(path);
    ::setenv("PSCLOUD_HOME", home_.c_str(), 1);
    CloudState state{.plan = {}, .step = "up", .machines = {}};
    state.plan.name = "blue";
    state.plan.id = "c0ffee";
    state.plan.region = "us-east-1";
    state.plan.endpoint = server_.url();
    state.plan.on_demand_fallback = true;
    state.plan.groups.resize(1);
    static_cast<MachineGroup&>(state.plan.groups[0]) = {"worker", 1, "c5.large", true};
    state.machines = {{.name = "worker-0",
                       .role = "worker",
                       .instance = "i-0",
                       .private_address = "",
                       .public_address = "",
                       .spot = true}};
    std::filesystem::create_directories(home_ + "/clusters/blue");
    std::ofstream(home_ + "/clusters/blue/state.json") << cloud_state_json(state);
  }
  ~CloudReplaceTest() override {
    ::unsetenv("PSCLOUD_HOME");
    std::filesystem::remove_all(home_);
  }

  std::string answer(const std::string& request) {
    const std::string action = form_value(request, "Action");
    if (action == "DescribeSecurityGroups") {
      return xml("<securityGroupInfo><item><groupId>sg-1</groupId></item></securityGroupInfo>");
    }
    if (action == "DescribeSubnets") return xml("<subnetSet><item><subnetId>subnet-1</subnetId></item></subnetSet>");
    if (action == "TerminateInstances") ended_.insert(form_value(request, "InstanceId.1"));
    if (action == "DescribeInstances") return list();
    if (action != "RunInstances") return xml("");
    tokens_.push_back(form_value(request, "ClientToken"));
    return run_(static_cast<int>(tokens_.size()));
  }

  std::string make() {
    made_.emplace("i-" + tokens_.back(), tokens_.back());
    return xml(fmt::format("<instancesSet><item><instanceId>i-{}</instanceId></item></instancesSet>", tokens_.back()));
  }

  std::string list() const {
    std::string items;
    for (const auto& [id, token] : made_) {
      items += fmt::format(
          "<item><instanceId>{}</instanceId><clientToken>{}</clientToken><instanceState><name>terminated</name>"
          "</instanceState></item>",
          id, token);
    }
    return xml("<reservationSet><item><instancesSet>" + items + "</instancesSet></item></reservationSet>");
  }

  // What becomes of it when EC2 answers to the orders like this, by their number.
  Error replace(std::function<std::string(int order)> run, std::chrono::seconds timeout = std::chrono::seconds(60)) {
    run_ = std::move(run);
    ReplaceOptions options;
    options.say = [this](std::string_view line) { said_.emplace_back(line); };
    options.timeout = timeout;
    options.ask_again_after = std::chrono::milliseconds(1);
    options.environment = [](const char* name) -> std::string {
      const std::string_view word = name;
      if (word == "AWS_MAX_ATTEMPTS") return "1";
      return word == "AWS_ACCESS_KEY_ID" || word == "AWS_SECRET_ACCESS_KEY" ? "MINE" : "";
    };
    return replace_machine("blue", "worker-0", options).error();
  }

  std::string home_;
  std::function<std::string(int order)> run_;
  std::vector<std::string> tokens_;          // of the orders
  std::map<std::string, std::string> made_;  // machines and their tokens
  std::set<std::string> ended_;
  std::vector<std::string> said_;
  ScriptedHttpServer server_;  // last: it uses the others
};

TEST_F(CloudReplaceTest, WhatMayPassIsAskedForAgainByTheSameToken) {
  const Error error = replace([&](int order) {
    if (order == 1) make();  // and the answer is lost
    if (order == 1) return std::string();
    if (order == 2) return refuse_by("InternalError", 500);
    if (order == 3) return refuse_by("Throttling", 400);
    return make();
  });
  ASSERT_EQ(tokens_.size(), 4u);
  EXPECT_EQ(std::set(tokens_.begin(), tokens_.end()).size(), 1u);
  EXPECT_THAT(error.message, HasSubstr("is terminated"));
  EXPECT_EQ(made_.size(), 1u);
  EXPECT_THAT(said_, Contains(HasSubstr("it is asked for again and again")));
}

TEST_F(CloudReplaceTest, AfterASureRefusalTheNextOrderIsAnother) {
  replace([&](int order) {
    // Of the first token no spot machine, of the second none on demand for sure: its answer comes at the second time.
    if (order == 1 || order == 3) return refuse_by("InsufficientInstanceCapacity", 500);
    if (order == 2) return refuse_by("InternalError", 500);
    return make();
  });
  ASSERT_EQ(tokens_.size(), 4u);
  EXPECT_EQ(tokens_[1], tokens_[0] + "d");
  EXPECT_EQ(tokens_[2], tokens_[1]);  // not the spot machine's, lest there be both
  EXPECT_THAT(tokens_[3], testing::Not(testing::StartsWith(tokens_[0])));
}

TEST_F(CloudReplaceTest, AMachineOfWhichEc2HasNotToldIsEndedWhenItIsGivenUp) {
  replace(
      [&](int) {
        make();
        return std::string();
      },
      std::chrono::seconds(0));
  ASSERT_EQ(made_.size(), 1u);
  EXPECT_EQ(ended_, std::set{made_.begin()->first});
}

TEST_F(CloudReplaceTest, ARefusalForGoodIsNotRepeated) {
  EXPECT_THAT(replace([](int) { return refuse_by("VcpuLimitExceeded", 400); }).message,
              HasSubstr("may not run so many c5.large spot machines"));
  EXPECT_EQ(tokens_.size(), 1u);
}

}  // namespace
}  // namespace pscloud

#include "launch/cloud/cloud_end.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "io/scripted_http_server.h"
#include "launch/cloud/lent_keys.h"

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string parameter_of(const std::string& request, const std::string& name) {
  const size_t at = request.find(name + "=");
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 1;
  return request.substr(begin, request.find_first_of("& \r\n", begin) - begin);
}

std::string joined(const JsonValue& list) {
  std::string all;
  for (const JsonValue& each : list.items()) all += (all.empty() ? "" : " ") + each.text();
  return all;
}

// An account that has a cluster of two machines, a group that is in use as long as an interface is in it, and a key.
class FakeAccount {
 public:
  static std::string text(const std::string& body) { return ScriptedHttpServer::text(200, "<R>" + body + "</R>"); }
  static std::string refuse(const std::string& code, int status = 400) {
    return ScriptedHttpServer::text(status,
                                    fmt::format("<R><Errors><Error><Code>{}</Code></Error></Errors></R>", code));
  }

  std::string answer(const std::string& request) {
    const std::string action = parameter_of(request, "Action");
    if (action == sick_action && sick-- > 0) return sick_answer;
    if (!action.starts_with("Describe")) calls.push_back(action);
    if (action == "TerminateInstances") {
      for (int i = 1; i <= 3; ++i) machines.erase(parameter_of(request, fmt::format("InstanceId.{}", i)));
    } else if (action == "ModifyNetworkInterfaceAttribute") {
      EXPECT_EQ(parameter_of(request, "NetworkInterfaceId"), "eni-i-1");
      EXPECT_EQ(parameter_of(request, "SecurityGroupId.1"), "sg-default");
      in_group = !may_leave;
    } else if (action == "DeleteSecurityGroup") {
      if (in_group) return refuse("DependencyViolation");
      group = false;
    } else if (action == "DeleteKeyPair") {
      key = false;
    } else if (action == "DescribeInstances") {
      if (machines.size() < 2 && late > 0 && --late == 0) machines.insert("i-3");
      return list_of_machines();
    } else if (action == "DescribeSecurityGroups") {
      const bool own = request.find("group-name") != std::string::npos;
      return text(own     ? "<securityGroupInfo><item><groupId>sg-default</groupId></item></securityGroupInfo>"
                  : group ? "<securityGroupInfo><item><groupId>sg-1</groupId></item></securityGroupInfo>"
                          : "<securityGroupInfo/>");
    } else if (action == "DescribeKeyPairs") {
      return text(key ? "<keySet><item><keyName>k</keyName></item></keySet>" : "<keySet/>");
    }
    return text("");
  }

  std::set<std::string> machines{"i-1", "i-2"};
  bool group = true;
  bool key = true;
  bool in_group = true;
  bool may_leave = true;
  std::string sick_action;  // whose next `sick` calls fail
  int sick = 0;
  std::string sick_answer = refuse("InternalError", 500);
  int late = 0;  // questions after the others' end until a machine appears that was asked for before
  std::vector<std::string> calls;

 private:
  std::string list_of_machines() const {
    std::string items;
    for (const std::string& id : machines) {
      items += fmt::format(
          "<item><instanceId>{0}</instanceId><instanceState><name>running</name></instanceState><networkInterfaceSet>"
          "<item><networkInterfaceId>eni-{0}</networkInterfaceId></item></networkInterfaceSet></item>",
          id);
    }
    return text("<reservationSet><item><instancesSet>" + items + "</instancesSet></item></reservationSet>");
  }
};

CloudCharge charge_of(const ScriptedHttpServer& server) {
  return {.cluster = "blue",
          .id = "c0ffee",
          .region = "us-east-1",
          .endpoint = server.url(),
          .vpc = "vpc-1",
          .machine = "i-1",
          .logs_to = "",
          .s3_endpoint = "",
          .state = R"({"step":"up"})",
          .setup = "#!/bin/sh\n",
          .keys = {.access_key_id = "LENT", .secret_access_key = "SECRET", .session_token = "TOKEN"}};
}

TakeDownOptions hurried() {
  TakeDownOptions options;
  options.timeout = std::chrono::seconds(1);
  options.environment = [](const char* name) {
    return std::string(std::string_view(name) == "AWS_MAX_ATTEMPTS" ? "1" : "");
  };
  return options;
}

TEST(CloudEnd, TheControllerLeavesItsGroupAndEndsLast) {
  FakeAccount account;
  ScriptedHttpServer server([&](const std::string& request) { return account.answer(request); });
  const CloudCharge charge = charge_of(server);
  EXPECT_TRUE(end_other_machines(charge, hurried()).value().empty());
  EXPECT_THAT(account.machines, ElementsAre("i-1"));
  EXPECT_TRUE(account.group);  // by which it is still reached
  EXPECT_TRUE(end_own_machine(charge, hurried()).value().empty());
  EXPECT_THAT(account.calls, ElementsAre("TerminateInstances", "ModifyNetworkInterfaceAttribute", "DeleteSecurityGroup",
                                         "DeleteKeyPair", "TerminateInstances"));
  EXPECT_TRUE(account.machines.empty());
  EXPECT_THAT(server.requests().back(), HasSubstr("Credential=LENT/"));
  EXPECT_THAT(server.requests().back(), HasSubstr("TOKEN"));
}

TEST(CloudEnd, TheMachineEndsThoughSomethingIsLeft) {
  FakeAccount account;
  account.may_leave = false;
  ScriptedHttpServer server([&](const std::string& request) { return account.answer(request); });
  const auto left = end_own_machine(charge_of(server), hurried()).value();
  ASSERT_EQ(left.size(), 1);
  EXPECT_THAT(left.front(), HasSubstr("sg-1 is still there"));
  EXPECT_FALSE(account.machines.contains("i-1"));
}

TEST(CloudEnd, TheControllerGoesOnWhateverCallFailsForAWhileAndHow) {
  const std::string answers[] = {FakeAccount::refuse("InternalError", 500), FakeAccount::refuse("Throttling"), ""};
  for (const char* action : {"DescribeInstances", "TerminateInstances", "DescribeSpotInstanceRequests",
                             "DescribePlacementGroups", "DescribeSecurityGroups", "ModifyNetworkInterfaceAttribute",
                             "DeleteSecurityGroup", "DescribeSubnets", "DescribeKeyPairs", "DeleteKeyPair"}) {
    for (const std::string& answer : answers) {
      FakeAccount account;
      account.machines = {"i-1"};
      account.sick_action = action;
      account.sick_answer = answer;
      account.sick = 1;
      ScriptedHttpServer server([&](const std::string& request) { return account.answer(request); });
      TakeDownOptions options = hurried();
      options.timeout = std::chrono::seconds(30);
      const std::string what = fmt::format("{}: '{}'", action, answer);
      const auto left = end_own_machine(charge_of(server), options);
      ASSERT_TRUE(left) << what << left.error().message;
      EXPECT_TRUE(left->empty()) << what;
      EXPECT_TRUE(account.machines.empty()) << what;
      EXPECT_FALSE(account.group || account.key) << what;
      EXPECT_LT(account.sick, 0) << what;  // it was asked, and failed so often
    }
  }
}

TEST(CloudEnd, ItIsSaidIfEc2DoesNotEndTheMachine) {
  FakeAccount account;
  account.machines = {"i-1"};
  account.sick_action = "TerminateInstances";
  account.sick = 1000;
  ScriptedHttpServer server([&](const std::string& request) { return account.answer(request); });
  EXPECT_FALSE(end_own_machine(charge_of(server), hurried()));
  EXPECT_FALSE(account.group);  // all the rest is gone
}

// A home of its own, with the folder that a controller has since its cluster came up.
class CloudChargeTest : public testing::Test {
 protected:
  CloudChargeTest() {
    char path[] = "/tmp/pscloud-charge-XXXXXX";
    home_ = ::mkdtemp(path);
    ::setenv("PSCLOUD_HOME", home_.c_str(), 1);
    std::filesystem::create_directories(home_ + "/clusters/blue");
  }
  ~CloudChargeTest() override {
    ::unsetenv("PSCLOUD_HOME");
    std::filesystem::remove_all(home_);
  }
  std::string home_;
};

TEST_F(CloudChargeTest, AMachineThatALauncherAskedForBeforeItWasKilledIsWaitedFor) {
  FakeAccount account;
  account.late = 2;
  ScriptedHttpServer server([&](const std::string& request) { return account.answer(request); });
  const CloudCharge charge = charge_of(server);
  ASSERT_TRUE(take_charge(charge));
  const RunFolder folder = open_cloud_folder("blue").value();
  EXPECT_EQ(folder.read(kSetupFile).value(), "#!/bin/sh\n");
  Ledger ledger = Ledger::open(folder.path("ledger.jsonl")).value();
  const uint64_t asked = intend_thing(ledger, "instances", "worker").value();
  TakeDownOptions options = hurried();
  options.timeout = std::chrono::seconds(30);
  options.settle = std::chrono::seconds(2);
  EXPECT_TRUE(end_other_machines(charge, options).value().empty());
  EXPECT_EQ(account.late, 0);
  EXPECT_THAT(account.machines, ElementsAre("i-1"));
  // One whose making was answered may not be listed yet: so it is ended by its id, too, and is waited for.
  ASSERT_TRUE(learned_things(ledger, asked, {"i-3"}));
  account.calls.clear();
  account.late = 2;
  EXPECT_TRUE(end_other_machines(charge, options).value().empty());
  EXPECT_EQ(account.calls.front(), "TerminateInstances");
  EXPECT_EQ(account.late, 0);
  EXPECT_THAT(account.machines, ElementsAre("i-1"));
}

TEST(CloudEnd, AChargeIsReadAsItWasWritten) {
  ScriptedHttpServer server([](const std::string&) { return std::string(); });
  const std::string json = cloud_charge_json(charge_of(server));
  EXPECT_EQ(cloud_charge_json(parse_cloud_charge(JsonValue::parse(json).value()).value()), json);
  EXPECT_FALSE(parse_cloud_charge(JsonValue::parse("{}").value()));
}

TEST(CloudController, LentKeysAreForOneClusterAndAsLongAsItMayLive) {
  std::string asked;
  ScriptedHttpServer server([&](const std::string& request) {
    asked = request;
    return ScriptedHttpServer::text(200,
                                    "<R><GetFederationTokenResult><Credentials><AccessKeyId>A</AccessKeyId>"
                                    "<SecretAccessKey>S</SecretAccessKey><SessionToken>T</SessionToken></Credentials>"
                                    "</GetFederationTokenResult></R>");
  });
  const AwsVariables variables = [&](const char* name) -> std::string {
    const std::string_view word = name;
    if (word == "AWS_ENDPOINT_URL_STS") return server.url();
    return word == "AWS_ACCESS_KEY_ID" || word == "AWS_SECRET_ACCESS_KEY" ? "MINE" : "";
  };
  AwsApi api = AwsApi::open({.environment = variables}).value();
  CloudPlan plan;
  plan.id = "c0ffee";
  plan.region = "us-east-1";
  plan.expires_unix = 10000;
  EXPECT_EQ(lend_keys(api, plan, "", 4000).value().session_token, "T");
  EXPECT_EQ(parameter_of(asked, "DurationSeconds"), "9600");
  EXPECT_EQ(parameter_of(asked, "Name"), "pscloud-c0ffee");
  EXPECT_THAT(asked, HasSubstr("/us-east-1/sts/aws4_request"));
  EXPECT_TRUE(lend_keys(api, plan, "", 20000));
  EXPECT_EQ(parameter_of(asked, "DurationSeconds"), "900");
  plan.expires_unix = 36 * 3600;
  EXPECT_TRUE(lend_keys(api, plan, "", 0));
  EXPECT_EQ(parameter_of(asked, "DurationSeconds"), "129600");  // AWS's limit
  asked.clear();
  plan.expires_unix = 3 * 86400;
  EXPECT_THAT(lend_keys(api, plan, "", 0).error().message, HasSubstr("for 72 h more, and AWS lends keys for 36 h"));
  EXPECT_EQ(asked, "");

  const std::string policy = lent_policy(plan, "s3://bucket/logs/of/mine");
  EXPECT_LE(policy.size(), 2048);  // AWS's limit
  EXPECT_THAT(policy, HasSubstr(R"("arn:aws:s3:::bucket/logs/of/mine/*")"));
  EXPECT_THAT(lent_policy(plan, ""), Not(HasSubstr("s3:")));
  const JsonValue removal = JsonValue::parse(policy).value()["Statement"].items().at(1);
  EXPECT_EQ(joined(removal["Condition"]["StringEquals"]["aws:ResourceTag/pscloud:id"]), "c0ffee");
  EXPECT_THAT(policy, Not(HasSubstr("RunInstances")));
  EXPECT_THAT(policy, Not(HasSubstr("PassRole")));
}

TEST(CloudController, LentKeysMakeSpotMachinesAsTheClusterHasThemAndNoOthers) {
  CloudPlan plan;
  plan.id = "0123456789abcdef";
  plan.region = "ap-southeast-1";
  plan.image = "ami-0123456789abcdef0";
  plan.instance_profile = "a-role-that-reads-and-writes-s3";
  plan.groups.resize(2);
  plan.groups[0].type = "r5.24xlarge";
  plan.groups[1].type = "c5d.24xlarge";
  plan.groups[1].spot = true;
  const std::string policy = lent_policy(plan, "s3://" + std::string(63, 'b') + "/logs/of/mine");
  EXPECT_LE(policy.size(), 2048);  // AWS's limit
  EXPECT_THAT(policy, Not(HasSubstr("r5.24xlarge")));
  const auto statements = JsonValue::parse(policy).value()["Statement"].items();
  const auto makes_machines = [](const JsonValue& statement) {
    return statement["Resource"].items().front().text() == "arn:aws:ec2:*:*:instance/*";
  };
  const auto making = std::ranges::find_if(statements, makes_machines);
  ASSERT_NE(making, statements.end());
  EXPECT_EQ(joined((*making)["Action"]), "ec2:RunInstances");
  const JsonValue& condition = (*making)["Condition"];
  EXPECT_EQ(joined(condition["StringEquals"]["aws:RequestTag/pscloud:id"]), plan.id);
  EXPECT_EQ(joined(condition["StringEqualsIfExists"]["ec2:InstanceType"]), "c5d.24xlarge");
  EXPECT_EQ(joined(condition["ArnLikeIfExists"]["ec2:InstanceProfile"]),
            "arn:aws:iam::*:instance-profile/a-role-that-reads-and-writes-s3 "
            "arn:aws:iam::*:instance-profile/*/a-role-that-reads-and-writes-s3");
  plan.instance_profile.clear();
  EXPECT_THAT(lent_policy(plan, ""), Not(HasSubstr("PassRole")));
}

}  // namespace
}  // namespace pscloud

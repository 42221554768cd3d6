#include "launch/cloud/cloud_plan.h"

#include <gmock/gmock.h>

#include "base/clock.h"
#include "base/json_value.h"
#include "launch/cloud/user_data.h"

namespace pscloud {
namespace {

using testing::HasSubstr;
using testing::Not;

CloudRequest request_of(int nodes) {
  CloudRequest request;
  request.name = "blue";
  request.nodes = nodes;
  request.instance = "c5.xlarge";
  return request;
}

CloudPlan plan_of_two() {
  CloudPlan plan;
  plan.name = "blue";
  plan.id = "0123456789abcdef";
  plan.region = "us-east-1";
  plan.user = "admin";
  plan.owner = "me@here";
  plan.subnet_cidr = "172.31.96.0/28";
  plan.ssh_from = "203.0.113.7/32";
  plan.idle_s = 3600;
  plan.expires_unix = 1800000000;
  CloudPlan::Group servers;
  static_cast<MachineGroup&>(servers) = {"server", 1, "r5.xlarge", false};
  servers.price.dollars = 0.25;
  servers.what = {.name = "r5.xlarge", .vcpus = 4, .memory_mib = 32768, .architectures = {}};
  CloudPlan::Group workers;
  static_cast<MachineGroup&>(workers) = {"worker", 4, "c5.xlarge", true};
  workers.price.unknown = "there is no history of it";
  plan.groups = {servers, workers};
  return plan;
}

TEST(CloudPlan, MachinesAreForAnythingUnlessRolesDiffer) {
  const auto groups = machine_groups(request_of(3)).value();
  ASSERT_EQ(groups.size(), 1);
  EXPECT_EQ(groups[0].role, "node");
  EXPECT_EQ(groups[0].count, 3);
  EXPECT_TRUE(roles_of_machine("node").empty());
}

TEST(CloudPlan, SpotIsForWorkersAndOneMachineStaysOnDemand) {
  CloudRequest request = request_of(3);
  request.spot = true;
  const auto groups = machine_groups(request).value();
  ASSERT_EQ(groups.size(), 2);
  EXPECT_EQ(groups[0].role, "server");
  EXPECT_EQ(groups[0].count, 1);
  EXPECT_FALSE(groups[0].spot);
  EXPECT_EQ(groups[1].count, 2);
  EXPECT_TRUE(groups[1].spot);
}

TEST(CloudPlan, EachRoleMayHaveItsType) {
  CloudRequest request = request_of(5);
  request.servers = 2;
  request.servers_instance = "r5.xlarge";
  const auto groups = machine_groups(request).value();
  EXPECT_EQ(groups[0].type, "r5.xlarge");
  EXPECT_EQ(groups[0].count, 2);
  EXPECT_EQ(groups[1].type, "c5.xlarge");
  EXPECT_EQ(groups[1].count, 3);
}

TEST(CloudPlan, ItIsSaidThatKeysAreNotLentAsLongAsMachinesMayLive) {
  CloudPlan plan = plan_of_two();
  plan.controller_subnet = "subnet-1";
  plan.expires_unix = unix_seconds_now() + 86400;
  EXPECT_THAT(cloud_plan_text(plan), Not(HasSubstr("--keep-cluster")));
  plan.expires_unix += 2 * 86400;  // --life 3d
  EXPECT_THAT(cloud_plan_text(plan), HasSubstr("keys are lent for 36 h at most, and it may live longer"));
  plan.controller_profile = "pilot";
  EXPECT_THAT(cloud_plan_text(plan), Not(HasSubstr("--keep-cluster")));
}

TEST(CloudPlan, AControllerIsOneMachineMoreOnDemand) {
  CloudRequest request = request_of(3);
  request.spot = request.controller = true;
  const auto groups = machine_groups(request).value();
  ASSERT_EQ(groups.size(), 3);
  EXPECT_EQ(groups[0].count + groups[1].count, 3);
  EXPECT_EQ(groups[2].role, kControllerRole);
  EXPECT_EQ(groups[2].count, 1);
  EXPECT_FALSE(groups[2].spot);
  EXPECT_FALSE(groups[2].type.empty());
  request.controller_instance = "m5.large";
  EXPECT_EQ(machine_groups(request).value()[2].type, "m5.large");
}

TEST(CloudPlan, WhatMakesNoSenseIsRefused) {
  const auto wrong = [](auto change) {
    CloudRequest request = request_of(3);
    change(request);
    const auto groups = machine_groups(request);
    return groups ? std::string("accepted") : groups.error().message;
  };
  EXPECT_THAT(wrong([](auto& r) { r.name = "Blue Moon"; }), HasSubstr("is no name of a cluster"));
  EXPECT_THAT(wrong([](auto& r) { r.name = "../x"; }), HasSubstr("is no name of a cluster"));
  EXPECT_THAT(wrong([](auto& r) { r.nodes = 1, r.spot = true; }), HasSubstr("none for workers"));
  EXPECT_THAT(wrong([](auto& r) { r.servers = 3; }), HasSubstr("none for workers"));
  EXPECT_THAT(wrong([](auto& r) { r.instance = ""; }), HasSubstr("--instance is missing"));
  EXPECT_THAT(wrong([](auto& r) { r.max_price = "0.08"; }), HasSubstr("is for --spot"));
  EXPECT_THAT(wrong([](auto& r) { r.spot = true, r.max_price = "cheap"; }), HasSubstr("dollars for an hour"));
  EXPECT_THAT(wrong([](auto& r) { r.nodes = 100000; }), HasSubstr("--nodes is 1 to"));
  EXPECT_THAT(wrong([](auto& r) { r.controller_profile = "pilot"; }), HasSubstr("are for --controller"));
}

TEST(CloudPlan, PricesThatAreNotKnownAreSaidToBeUnknown) {
  CloudPlan plan = plan_of_two();
  EXPECT_EQ(plan.dollars_per_hour(), std::pair(0.25, false));
  const std::string text = cloud_plan_text(plan);
  EXPECT_THAT(text, HasSubstr("more than $0.2500 an hour"));
  EXPECT_THAT(text, HasSubstr("c5.xlarge: unknown: there is no history of it"));
  EXPECT_THAT(text, HasSubstr("ssh from 203.0.113.7/32"));
  plan.groups[0].price.dollars.reset();
  EXPECT_THAT(cloud_plan_text(plan), HasSubstr("price    unknown\n"));
  EXPECT_THAT(cloud_plan_text(plan), Not(HasSubstr("$0.0000")));
}

TEST(CloudPlan, APlanIsReadAsItWasWritten) {
  const CloudPlan plan = plan_of_two();
  const std::string json = cloud_plan_json(plan);
  const CloudPlan again = parse_cloud_plan(JsonValue::parse(json).value()).value();
  EXPECT_EQ(cloud_plan_json(again), json);
  EXPECT_EQ(again.machines(), 5);
  EXPECT_FALSE(parse_cloud_plan(JsonValue::parse("{}").value()));
}

TEST(CloudPlan, AQuotaThatIsTooSmallIsFoundBefore) {
  CloudPlan plan = plan_of_two();
  plan.quotas = {{.what = "spot standard", .wanted = 16, .limit = 20, .used = 8, .unknown = ""}};
  EXPECT_THAT(check_quotas(plan).error().message, HasSubstr("may run 20 vCPUs spot standard"));
  plan.quotas[0].used = 4;
  EXPECT_TRUE(check_quotas(plan));
  plan.quotas[0].limit.reset();  // nobody knows
  plan.quotas[0].wanted = 1000;
  EXPECT_TRUE(check_quotas(plan));
}

TEST(CloudPlan, DurationsAreReadAndWritten) {
  EXPECT_EQ(parse_duration("90s").value(), 90);
  EXPECT_EQ(parse_duration("12h").value(), 43200);
  for (const char* wrong : {"", "1", "h", "-1h", "0s", "1.5h", "31d"}) EXPECT_FALSE(parse_duration(wrong)) << wrong;
  EXPECT_EQ(duration_text(7200), "2 h");
  EXPECT_EQ(duration_text(90), "90 s");
}

TEST(UserData, HasTheWatchAndTheEndOfTheMachinesTime) {
  const std::string text = user_data(plan_of_two(), "worker").value();
  EXPECT_TRUE(text.starts_with("#!/bin/bash\n"));
  EXPECT_THAT(text, HasSubstr("/usr/local/sbin/pscloud-watch 3600 1800000000"));
  EXPECT_THAT(text, HasSubstr("user=admin\n"));
  EXPECT_THAT(text, Not(HasSubstr("nvidia")));
}

TEST(UserData, MachinesWithGpusAndNoOthersLookForThemAfterTheirSetUp) {
  CloudPlan plan = plan_of_two();
  plan.setup = "#!/bin/sh\napt-get install the-driver\n";
  plan.groups[1].what.gpus = 4;
  EXPECT_THAT(user_data(plan, "server").value(), Not(HasSubstr("nvidia")));
  EXPECT_THAT(user_data(plan, kControllerRole).value(), Not(HasSubstr("nvidia")));
  const std::string text = user_data(plan, "worker").value();
  EXPECT_GT(text.find("nvidia-smi"), text.find("/var/lib/pscloud/setup ||"));
  EXPECT_LT(text.find("fail \"nvidia-smi tells of no GPU\""), text.find("echo ready"));
  EXPECT_THAT(text, Not(HasSubstr("daemon.json")));
  plan.docker = plan.swarm = true;
  EXPECT_THAT(user_data(plan, "worker").value(), HasSubstr("node-generic-resources"));
  EXPECT_THAT(user_data(plan, "server").value(), Not(HasSubstr("daemon.json")));
  EXPECT_THAT(user_data(plan, "server").value(), HasSubstr("docker info"));
  EXPECT_THAT(user_data(plan, kControllerRole).value(), Not(HasSubstr("docker")));
}

TEST(CloudPlan, ASwarmIsSaidWithItsManager) {
  CloudPlan plan = plan_of_two();
  EXPECT_THAT(cloud_plan_text(plan), Not(HasSubstr("Swarm")));
  plan.swarm = true;
  EXPECT_THAT(cloud_plan_text(plan), HasSubstr("a Docker Swarm of all machines: server-0 manages it"));
  EXPECT_TRUE(parse_cloud_plan(JsonValue::parse(cloud_plan_json(plan)).value()).value().swarm);
}

TEST(UserData, ASetUpScriptIsTakenAsItIs) {
  CloudPlan plan = plan_of_two();
  plan.setup = "#!/bin/sh\necho '\"END\n' $(id)\n";
  const std::string text = user_data(plan, "worker").value();
  EXPECT_THAT(text, Not(HasSubstr("$(id)")));  // no shell reads it on the way
  plan.setup = std::string(20000, 'x');
  EXPECT_THAT(user_data(plan, "worker").error().message, HasSubstr("too long"));
}

}  // namespace
}  // namespace pscloud

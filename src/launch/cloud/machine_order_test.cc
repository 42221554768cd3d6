#include "launch/cloud/machine_order.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "base/json_value.h"
#include "io/scripted_http_server.h"
#include "launch/cloud/cloud_down.h"

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class MachineOrderTest : public testing::Test {
 protected:
  MachineOrderTest() {
    char path[] = "/tmp/pscloud-order-XXXXXX";
    folder_ = ::mkdtemp(path);
    plan_.name = "blue";
    plan_.id = "c0ffee";
    plan_.region = "us-east-1";
  }
  ~MachineOrderTest() override { std::filesystem::remove_all(folder_); }

  static std::string made() {
    const auto item = [](int number) {
      return fmt::format(
          "<item><instanceId>i-{0}</instanceId><spotInstanceRequestId>sir-{0}</spotInstanceRequestId></item>", number);
    };
    return ScriptedHttpServer::text(200, "<R><instancesSet>" + item(1) + item(2) + "</instancesSet></R>");
  }
  static std::string refused(const std::string& code) {
    return ScriptedHttpServer::text(403, fmt::format("<R><Errors><Error><Code>{}</Code></Error></Errors></R>", code));
  }

  Result<MachineAnswer> order_by(const ScriptedHttpServer& server, bool spot) {
    AwsApi api = AwsApi::open({.environment = [](const char*) { return std::string("KEY"); },
                               .region = "us-east-1",
                               .endpoint = server.url(),
                               .to_be_known = std::chrono::seconds(30)})
                     .value();
    Ledger ledger = Ledger::open(folder_ + "/ledger.jsonl").value();
    return order_machines(api, ledger, plan_, {"worker", 2, "c5.xlarge", spot}, {"s", "g", "#!/bin/sh", "t"});
  }

  // The form, decoded as far as these tests need it.
  std::string order(bool spot) {
    ScriptedHttpServer server([](const std::string&) { return made(); });
    EXPECT_EQ(order_by(server, spot).value().instance, "i-1");
    return server.requests().back();
  }

  std::string folder_;
  CloudPlan plan_;
};

TEST_F(MachineOrderTest, AllThatIsMadeHasTheTagsFromTheBeginning) {
  const std::string on_demand = order(false);
  EXPECT_THAT(on_demand, HasSubstr("TagSpecification.1.ResourceType=instance&"));
  EXPECT_THAT(on_demand, HasSubstr("TagSpecification.2.ResourceType=volume&"));
  EXPECT_THAT(on_demand, HasSubstr("TagSpecification.3.ResourceType=network-interface&"));
  EXPECT_THAT(on_demand, Not(HasSubstr("TagSpecification.4.")));  // EC2 refuses types of which none is made
  const std::string spot = order(true);
  EXPECT_THAT(spot, HasSubstr("TagSpecification.4.ResourceType=spot-instances-request&"));
  for (const char* number : {"1", "2", "3", "4"}) {
    EXPECT_THAT(spot, HasSubstr(std::string("TagSpecification.") + number + ".Tag.3.Value=c0ffee&"));
  }
}

TEST_F(MachineOrderTest, AllThatWasMadeStandsInTheLedgerById) {
  order(true);
  const auto known = known_ids(Ledger::read(folder_ + "/ledger.jsonl").value());
  EXPECT_THAT(known.at("instances"), ElementsAre("i-1", "i-2"));
  EXPECT_THAT(known.at("spot_requests"), ElementsAre("sir-1", "sir-2"));
}

TEST_F(MachineOrderTest, WhatEc2DoesNotKnowYetIsAskedForAgainByTheSameToken) {
  for (const char* code : {"InvalidGroup.NotFound", "InvalidKeyPair.NotFound", "InvalidSubnetID.NotFound",
                           "InvalidPlacementGroup.Unknown"}) {
    int asked = 0;
    ScriptedHttpServer server([&](const std::string& request) {
      EXPECT_THAT(request, HasSubstr("ClientToken=t&"));
      return ++asked == 1 ? refused(code) : made();
    });
    EXPECT_EQ(order_by(server, false).value().instance, "i-1") << code;
    EXPECT_EQ(asked, 2) << code;
  }
  plan_.subnet = "subnet-of-the-user";  // is there, or will never be
  ScriptedHttpServer server([&](const std::string&) { return refused("InvalidSubnetID.NotFound"); });
  EXPECT_EQ(order_by(server, false).value().instance, "");
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST_F(MachineOrderTest, TheRoleThatTheFirstSpotMachineNeedsIsNamed) {
  ScriptedHttpServer server(
      [](const std::string&) { return refused("AuthFailure.ServiceLinkedRoleCreationNotPermitted"); });
  const MachineAnswer answer = order_by(server, true).value();
  EXPECT_EQ(answer.error.code, Code::kInvalid);
  EXPECT_THAT(answer.error.message, HasSubstr("create-service-linked-role --aws-service-name spot.amazonaws.com"));
}

TEST_F(MachineOrderTest, NoDiskOutlivesItsMachineThoughTheImageWouldKeepIt) {
  EXPECT_THAT(order(false), Not(HasSubstr("BlockDeviceMapping")));
  plan_.kept_disks = {{"/dev/xvda", 8}, {"/dev/sdb", 100}};
  const std::string form = order(false);
  EXPECT_THAT(form,
              HasSubstr("BlockDeviceMapping.1.DeviceName=%2Fdev%2Fxvda&"
                        "BlockDeviceMapping.1.Ebs.DeleteOnTermination=true&BlockDeviceMapping.1.Ebs.VolumeSize=8&"));
  EXPECT_THAT(form, HasSubstr("BlockDeviceMapping.2.DeviceName=%2Fdev%2Fsdb&"));
  const std::string json = cloud_plan_json(plan_);
  EXPECT_EQ(cloud_plan_json(parse_cloud_plan(JsonValue::parse(json).value()).value()), json);
  EXPECT_THAT(json, HasSubstr("/dev/xvda"));
}

}  // namespace
}  // namespace pscloud

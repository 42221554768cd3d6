#include "launch/cloud/machine_order.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "base/json_value.h"
#include "io/scripted_http_server.h"

namespace pscloud {
namespace {

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

  // The form, decoded as far as these tests need it.
  std::string order(bool spot) {
    ScriptedHttpServer server([](const std::string&) {
      return ScriptedHttpServer::text(200,
                                      "<R><instancesSet><item><instanceId>i-1</instanceId></item></instancesSet></R>");
    });
    AwsApi api = AwsApi::open({.environment = [](const char*) { return std::string("KEY"); },
                               .region = "us-east-1",
                               .endpoint = server.url()})
                     .value();
    Ledger ledger = Ledger::open(folder_ + "/ledger.jsonl").value();
    const MachineGroup group{"worker", 2, "c5.xlarge", spot};
    EXPECT_EQ(order_machines(api, ledger, plan_, group, {"s", "g", "#!/bin/sh", "t"}).value().instance, "i-1");
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

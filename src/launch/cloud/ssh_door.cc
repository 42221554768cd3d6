#include "launch/cloud/ssh_door.h"

#include "launch/cloud/aws_api.h"
#include "launch/cloud/cloud_folder.h"
#include "launch/cloud/cloud_survey.h"
#include "launch/cloud/cloud_sweep.h"

namespace pscloud {
namespace {

Ec2Form ssh_from_block(const std::string& group, const std::string& block) {
  Ec2Form form;
  form.set("GroupId", group).set("IpPermissions.1.IpProtocol", "tcp").set("IpPermissions.1.FromPort", "22");
  form.set("IpPermissions.1.ToPort", "22").set("IpPermissions.1.IpRanges.1.CidrIp", block);
  return form;
}

}  // namespace

Result<std::string> move_ssh_door(const std::string& cluster, const std::string& wanted,
                                  const AwsVariables& environment) {
  RunFolder folder = TRY(open_cloud_folder(cluster));
  TRY(folder.lock());
  CloudState state = TRY(read_cloud_state(folder));
  const std::string before = state.plan.ssh_from;
  std::string block = TRY(find_ssh_from(wanted, state.plan));
  AwsApi api =
      TRY(AwsApi::open({.environment = environment, .region = state.plan.region, .endpoint = state.plan.endpoint}));
  const std::vector<std::string> groups = TRY(list_things(api, "security_group", state.plan.id));
  if (groups.empty()) return not_found("the cluster '{}' has no security group any more", cluster);
  // Wherever this is cut off, the folder names every door that may be open, and the next time closes it.
  if (before != block) {
    const Ec2Answer closed = TRY(api.ask("RevokeSecurityGroupIngress", ssh_from_block(groups.front(), before)));
    if (!closed.refused.empty() && closed.refused != "InvalidPermission.NotFound") return closed.error;
    state.plan.ssh_from = block;
    TRY(folder.write("state.json", cloud_state_json(state)));
  }
  auto opened = api.ask("AuthorizeSecurityGroupIngress", ssh_from_block(groups.front(), block));
  if (opened && (opened->refused.empty() || opened->refused == "InvalidPermission.Duplicate")) return block;
  Error error = opened ? std::move(opened->error) : std::move(opened.error());
  error.message += "; until it is opened again, ssh gets in from nowhere";
  return error;
}

}  // namespace pscloud

#pragma once

#include <optional>
#include <string>

#include "launch/cloud/aws_api.h"
#include "launch/cloud/cloud_end.h"
#include "launch/cloud/cloud_folder.h"
#include "launch/host/ssh_connection.h"

namespace pscloud {

// A cluster may have a machine more, its controller, on which a launcher runs jobs while the user's own machine is off.
// This is the user's side of it; cloud_end.h is the controller's.

// Lets the controller of a cluster that comes up reach the other machines: it makes a key of its own, whose public half
// is given to them for the controller's address alone, and is told their host keys. What the cluster is to the
// controller is written to controller.json in the cluster's folder. Does nothing for a cluster without one.
Result<> introduce_controller(const RunFolder& folder, const CloudState& state);

// How ssh reaches a controller from here.
struct ControllerWay {
  Host host;
  SshOptions ssh;
};
// As long as the cluster has a folder here. kNotFound if it has none, or no controller.
Result<ControllerWay> way_to_controller(const std::string& name);

// A cluster that is up and has a controller.
struct CloudController {
  RunFolder folder;
  CloudState state;
  ControllerWay way;
  Cluster cluster;  // as the controller sees it
};
// None if `name` is no cluster of the cloud, or one without a controller.
Result<std::optional<CloudController>> find_cloud_controller(const std::string& name);

// What its controller must know to take it down: with keys lent by the account unless its machine has a role. The logs
// go to `logs_to` before, "s3://bucket/logs", unless that is empty.
Result<CloudCharge> charge_controller(const CloudController& controller, const std::string& logs_to);

// The cluster is its controller's from now on: no other job begins there.
Result<> give_away(const CloudController& controller);

// What lent keys allow: to look, to remove what bears this cluster's id, and to write below `logs_to`.
std::string lent_policy(const CloudPlan& plan, const std::string& logs_to);
// Keys for taking this cluster down and for nothing else, good a while longer than its machines may live, though for 36
// hours at most: AWS lends none for longer.
Result<AwsCredentials> lend_keys(AwsApi& api, const CloudPlan& plan, const std::string& logs_to, int64_t now_unix);

}  // namespace pscloud

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

// What its controller must know to replace its spot machines and to take it down: with keys lent by the account unless
// its machine has a role. The logs go to `logs_to` before, "s3://bucket/logs", unless that is empty.
Result<CloudCharge> charge_controller(const CloudController& controller, const std::string& logs_to);

// The cluster is its controller's from now on: no other job begins there.
Result<> give_away(const CloudController& controller);

// By which a controller with this public key comes in to the other machines, from its own alone: for authorized_keys.
Result<std::string> controller_login(const CloudState& state, const std::string& public_key);

}  // namespace pscloud

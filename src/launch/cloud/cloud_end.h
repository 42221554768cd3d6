#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_value.h"
#include "io/aws_signature.h"
#include "launch/cloud/cloud_down.h"

namespace pscloud {

// A cluster that is taken down from within, by its controller. What a machine uses cannot be removed while it is there,
// and nobody is there after the last one. So the controller's machine uses nothing of the cluster's but its security
// group, and leaves that, for the network's own, before it removes it; its own end is the last call.

// What a controller must know of the cluster that it is in.
struct CloudCharge {
  std::string cluster;
  std::string id;
  std::string region;
  std::string endpoint;
  std::string vpc;
  std::string machine;      // the controller's own, "i-..."
  std::string logs_to;      // where the logs shall be when it is gone, "s3://bucket/logs"; empty: nowhere
  std::string s3_endpoint;  // for that; empty: Amazon's
  std::string state;        // state.json of the cluster's folder, as the controller shall have it
  std::string setup;        // the set-up script of its machines
  AwsCredentials keys;      // lent for this; empty: those of the machine's role
};
// With the keys: for a stream that nobody else reads, never for a file.
std::string cloud_charge_json(const CloudCharge& charge);
Result<CloudCharge> parse_cloud_charge(const JsonValue& value);

// Writes the folder of the cluster that the controller's launcher needs to replace machines; what ssh needs is there
// since the cluster came up.
Result<> take_charge(const CloudCharge& charge);

// What AWS's programs would find in their environment if they acted for the controller; the rest is `otherwise`.
AwsVariables charge_variables(const CloudCharge& charge, AwsVariables otherwise = process_aws_variables());

// Ends all machines but the controller's own, and what only they have used. One that was asked for in the place of
// another, and whose making was cut off, is waited for. The lines name what is left, and why.
Result<std::vector<std::string>> end_other_machines(const CloudCharge& charge, const TakeDownOptions& options);

// Removes all the rest, then ends the controller's own machine: if all goes well nobody is there to see it return. From
// its beginning on nobody comes in by ssh any more. An error: EC2 has not ended the machine, which must do it itself.
Result<std::vector<std::string>> end_own_machine(const CloudCharge& charge, const TakeDownOptions& options);

}  // namespace pscloud

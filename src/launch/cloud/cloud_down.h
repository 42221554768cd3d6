#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/aws_credentials.h"
#include "launch/cloud/cloud_folder.h"
#include "launch/cloud/cloud_sweep.h"
#include "launch/ledger.h"

namespace pscloud {

struct TakeDownOptions {
  std::function<void(std::string_view)> say = [](std::string_view) {};  // progress, a line each
  std::function<bool()> cancelled = {};
  std::chrono::seconds timeout{900};  // for each kind of things
  // How long a thing may take to appear in EC2's lists after it was made, or after its making was cut off.
  std::chrono::seconds settle{10};
  AwsVariables environment = process_aws_variables();
};

// Ends the machines of a cluster and removes all that stands in its ledger, found by tag and by the ids that are known,
// and looks whether it is gone; then its folder is removed too. May be called by any process, at any time after any
// other was killed. kUnavailable while another process brings it up or down. The lines that come back name what is
// left, and why: call it again.
Result<std::vector<std::string>> take_down(const std::string& name, const TakeDownOptions& options);

// The same for one who has the folder locked.
Result<std::vector<std::string>> take_down(RunFolder& folder, const TakeDownOptions& options);

// For a cluster without a folder, because that was lost or is on another machine: everything with this id.
Result<std::vector<std::string>> take_down_by_id(const std::string& cloud_id, const std::string& region,
                                                 const std::string& endpoint, const TakeDownOptions& options);

// Writes down that things of this kind are about to be made by one call; `learned` when EC2 has said that they are.
Result<uint64_t> intend_thing(Ledger& ledger, const std::string& kind, const std::string& name);
Result<> learned_things(Ledger& ledger, uint64_t entry, const std::vector<std::string>& ids);
// Until when what stands in a ledger may still appear. Lists of EC2's lag behind its answers, so that holds for what it
// has said to be made as well.
std::chrono::steady_clock::time_point quiet_after(const std::vector<LedgerEntry>& entries, const std::string& kind,
                                                  std::chrono::seconds settle);
// The ids in a ledger, by kind.
std::map<std::string, std::vector<std::string>> known_ids(const std::vector<LedgerEntry>& entries);

// Removes what the ledger has of this kind, and strikes it out there when it is gone.
Result<> sweep_ledger(AwsApi& api, Ledger& ledger, const std::string& kind, const std::string& cloud_id,
                      std::chrono::seconds settle, SweepOptions options);

}  // namespace pscloud

#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/aws_credentials.h"
#include "launch/cloud/cloud_folder.h"
#include "launch/ledger.h"

namespace pscloud {

struct TakeDownOptions {
  std::function<void(std::string_view)> say = [](std::string_view) {};  // progress, a line each
  std::function<bool()> cancelled = {};
  std::chrono::seconds timeout{900};  // for each kind of things
  // How long a thing may take to appear whose making was cut off before EC2 had answered.
  std::chrono::seconds settle{10};
  AwsVariables environment = process_aws_variables();
};

// Ends the machines of a cluster and removes all that stands in its ledger, found by tag, and looks whether it is gone;
// then its folder is removed too. May be called by any process, at any time after any other was killed. kUnavailable
// while another process brings it up or down. The lines that come back name what is left, and why: call it again.
Result<std::vector<std::string>> take_down(const std::string& name, const TakeDownOptions& options);

// The same for one who has the folder locked.
Result<std::vector<std::string>> take_down(RunFolder& folder, const TakeDownOptions& options);

// For a cluster without a folder, because that was lost or is on another machine: everything with this id.
Result<std::vector<std::string>> take_down_by_id(const std::string& cloud_id, const std::string& region,
                                                 const std::string& endpoint, const TakeDownOptions& options);

// Writes down that a thing of this kind is about to be made; `learned` when it is there.
Result<uint64_t> intend_thing(Ledger& ledger, const std::string& kind, const std::string& name);
Result<> learned_thing(Ledger& ledger, uint64_t entry, const std::string& id);
// Until when what stands in a ledger as about to be made may still appear.
std::chrono::steady_clock::time_point quiet_after(const std::vector<LedgerEntry>& entries, const std::string& kind,
                                                  std::chrono::seconds settle);

}  // namespace pscloud

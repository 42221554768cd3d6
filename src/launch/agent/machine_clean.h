#pragma once

#include <string>
#include <vector>

#include "base/json_value.h"
#include "pscloud/error.h"

namespace pscloud {

// What a run may have left on this machine.
struct MachineRemains {
  std::string job = {};
  std::string agent = {};                 // its identity as text (processes.h); empty: not known
  std::string folder = {};                // that holds the private folders of tasks
  std::vector<std::string> tasks = {};    // whose: others in this folder are of other machines that share it
  std::vector<std::string> folders = {};  // more to remove
  int grace_ms = 0;                       // that programs have for their end
};
std::string remains_json(const MachineRemains& remains);
Result<MachineRemains> parse_remains(const JsonValue& value);

// Ends all processes of the job on this machine and removes the folders: lets an agent that is still there do it within
// its programs' grace, then kills what there is, found by the groups that the tasks noted and by their mark, and looks
// again. The lines that come back name what is left.
std::vector<std::string> clean_machine(const MachineRemains& remains);

}  // namespace pscloud

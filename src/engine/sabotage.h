#pragma once

namespace pscloud {

// Parts of the protocol that the simulator can switch off, to prove that its checks would notice.
// Nothing else sets these.
struct Sabotage {
  bool no_dedup = false;  // owners do again what they have done
  bool no_gate = false;   // owners let workers run ahead without bound
  bool no_bound = false;  // workers send more than their credit and owners hold it
  bool no_memo = false;   // owners do not keep what they said about work
};

}  // namespace pscloud

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launch/cluster_file.h"

namespace pscloud {

// Where machines come from while a job runs, for those that are taken away. One thread uses it, and nothing here
// blocks but the destructor, which ends what is under way.
class MachineSupply {
 public:
  // What has come of a wish: a machine, or why there is none.
  struct Offer {
    std::string instead_of;
    Result<Host> host;
  };
  struct News {
    std::vector<std::string> words;  // progress, for people
    std::vector<Offer> offers;
  };

  virtual ~MachineSupply() = default;

  // Wants one like that of this name. An offer follows, in minutes.
  virtual void ask(const std::string& host) = 0;
  // Since the last time.
  virtual News take() = 0;
};

// That of the cluster; none if its machines are not ours to make.
std::unique_ptr<MachineSupply> make_machine_supply(const Cluster& cluster);

}  // namespace pscloud

#pragma once

#include <span>
#include <string>

#include "base/asset.h"
#include "cli/bench/bench_adder_job.h"
#include "launch/plan.h"

namespace pscloud {

// The scripts of bench/peers by which other systems run the adder. They stand in this program, so that they are there
// wherever it is, and travel to each task as files of its own.
std::span<const Asset> peer_scripts();

struct AdderPeer {
  const char* name;     // "tensorflow"
  const char* script;   // of peer_scripts()
  const char* package;  // what pip installs
  Framework framework;  // whose variables the script reads
  const char* secret;   // variable that names a file by which its processes know each other; nullptr: they do not
};
std::span<const AdderPeer> adder_peers();

// The adder of a peer as a job: its servers and its workers are tasks, run by `python` where they are. Each system has
// its own idea of how much warm-up it needs, unless `flags_warmup`.
Job adder_peer_job(const AdderPeer& peer, const AdderFlags& flags, bool flags_warmup, const std::string& python);

}  // namespace pscloud

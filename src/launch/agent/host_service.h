#pragma once

#include <optional>
#include <string>

#include "base/json_value.h"
#include "launch/agent/host_probe.h"
#include "launch/bundle/shipped_files.h"

namespace pscloud {

// What an agent can be asked beside running tasks, before they begin and after they have ended; docs/launch-agent.md
// lists the questions. Never fails: an answer may have an "error". One thread.
class HostService {
 public:
  HostService();

  std::string answer(const JsonValue& question);

 private:
  Result<std::string> try_answer(const std::string& what, const JsonValue& question);
  Result<std::string> hello(const JsonValue& question) const;
  Result<std::string> listen(const JsonValue& question);
  Result<std::string> missing(const JsonValue& question) const;
  Result<std::string> put(const JsonValue& question);

  const std::string cache_folder_;
  const Fd own_bundle_;  // so long it is in use
  FileCache files_;
  std::optional<ProbedSocket> probed_;
};

}  // namespace pscloud

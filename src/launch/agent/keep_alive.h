#pragma once

#include <chrono>
#include <string>

namespace pscloud {

// A machine of the cloud ends itself when a file has not been touched for long (cloud/user_data.h). An agent lives only
// as long as its launcher speaks, so as long as it does it touches the file. On other machines there is no such file,
// and nothing happens.
class KeepAlive {
 public:
  explicit KeepAlive(std::string file = kFile) : file_(std::move(file)) {}

  // Now and then touches it.
  void beat(std::chrono::steady_clock::time_point now);

  // Asks the machine to end itself now, as if nobody had touched the file for long.
  void end_machine() const;

  static constexpr const char* kFile = "/var/lib/pscloud/alive";

 private:
  const std::string file_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace pscloud

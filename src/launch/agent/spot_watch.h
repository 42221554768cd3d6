#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/fd.h"
#include "base/mutex.h"
#include "io/aws_credentials.h"
#include "pscloud/error.h"

namespace pscloud {

// That EC2 wants a spot machine back.
struct SpotNotice {
  std::string action;           // "terminate", "stop", "hibernate"
  std::chrono::sys_seconds at;  // when

  // 0 if it is over.
  int seconds_left(std::chrono::system_clock::time_point now) const;
};
// {"action": "terminate", "time": "2026-11-17T08:22:00Z"}
Result<SpotNotice> parse_spot_notice(std::string_view text);

// Asks the metadata service of this machine every few seconds, on a thread of its own, whether it is taken away. That
// costs a request of some hundred bytes which does not leave the machine. Used by one thread.
class SpotWatch {
 public:
  explicit SpotWatch(AwsVariables environment);
  ~SpotWatch();

  // Readable once there is a notice.
  int fd() const { return wake_.get(); }
  // The notice, once.
  std::optional<SpotNotice> take();

 private:
  void look_until_there_is_one();
  bool pause();

  const AwsVariables environment_;
  Fd wake_;
  std::atomic<bool> ending_ = false;
  Mutex mutex_;
  CondVar changed_;
  std::optional<SpotNotice> notice_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it uses the others
};

}  // namespace pscloud

#include "launch/cloud/patience.h"

#include <algorithm>
#include <thread>

namespace pscloud {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongestPause{3000};
constexpr milliseconds kListenEvery{50};

}  // namespace

Result<> Patience::pause() {
  for (milliseconds left = next_; left > milliseconds(0); left -= kListenEvery) {
    if (cancelled_ && cancelled_()) return job_failed("interrupted");
    std::this_thread::sleep_for(std::min(left, kListenEvery));
  }
  next_ = std::min(next_ * 2, kLongestPause);
  return {};
}

}  // namespace pscloud

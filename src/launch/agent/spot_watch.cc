#include "launch/agent/spot_watch.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/check.h"
#include "base/json_value.h"
#include "base/log.h"
#include "io/instance_metadata.h"

namespace pscloud {
namespace {

// A notice comes two minutes before the end. AWS recommends to look every five seconds; this is a little more often,
// for what is done about it takes its time too.
constexpr std::chrono::seconds kLookEvery{3};
constexpr const char* kNoticePath = "spot/instance-action";

}  // namespace

int SpotNotice::seconds_left(std::chrono::system_clock::time_point now) const {
  return static_cast<int>(
      std::clamp<int64_t>(std::chrono::duration_cast<std::chrono::seconds>(at - now).count(), 0, 86400));
}

Result<SpotNotice> parse_spot_notice(std::string_view text) {
  const auto value = JsonValue::parse(text);
  if (!value) return corrupt("{}", value.error().message);
  const std::string& time = (*value)["time"].text();
  std::tm parts{};
  const char* end = ::strptime(time.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  if (end == nullptr || *end != '\0') return corrupt("'{}' is no time", time);
  constexpr size_t kActionMax = 20;
  return SpotNotice{(*value)["action"].text().substr(0, kActionMax),
                    std::chrono::sys_seconds(std::chrono::seconds(::timegm(&parts)))};
}

SpotWatch::SpotWatch(AwsVariables environment)
    : environment_(std::move(environment)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  CHECK(wake_);
  thread_ = std::jthread([this] { look_until_there_is_one(); });
}

SpotWatch::~SpotWatch() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
}

bool SpotWatch::pause() {
  MutexLock lock(mutex_);
  return !changed_.wait_for(mutex_, kLookEvery, [this] { return ending_.load(); });
}

void SpotWatch::look_until_there_is_one() {
  InstanceMetadata metadata(environment_, [this] { return ending_.load(); });
  do {
    const auto text = metadata.get(kNoticePath);
    if (!text || !*text) continue;
    auto notice = parse_spot_notice(**text);
    if (!notice) {
      log_warning("a notice of the metadata service is not understood: {}", notice.error().message);
      continue;
    }
    MutexLock lock(mutex_);
    notice_ = *std::move(notice);
    ::eventfd_write(wake_.get(), 1);
    return;
  } while (pause());
}

std::optional<SpotNotice> SpotWatch::take() {
  MutexLock lock(mutex_);
  eventfd_t count = 0;
  ::eventfd_read(wake_.get(), &count);
  return std::exchange(notice_, std::nullopt);
}

}  // namespace pscloud

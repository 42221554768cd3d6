#include "launch/swarm/spot_notices.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "launch/cloud/user_data.h"
#include "launch/host/ssh_connection.h"

namespace pscloud {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kToListen{20};  // the program may have to be brought there
constexpr std::chrono::seconds kListenAgain{5};
constexpr int kLookIfEndingMs = 200;
constexpr size_t kActionMax = 20;
constexpr int64_t kSecondsMax = 86400;

}  // namespace

SpotNotices::~SpotNotices() {
  MutexLock lock(mutex_);
  ending_ = true;
  changed_.notify_all();
}

void SpotNotices::listen(const Host& host) {
  if (!host.spot || threads_.contains(host.name)) return;
  threads_.emplace(host.name, std::jthread([this, host] { run(host); }));
}

std::vector<SpotNotices::Notice> SpotNotices::take() {
  MutexLock lock(mutex_);
  return std::exchange(notices_, {});
}

bool SpotNotices::is_ending() {
  MutexLock lock(mutex_);
  return ending_;
}

void SpotNotices::run(const Host& host) {
  while (!hear(host)) {
    MutexLock lock(mutex_);
    if (changed_.wait_for(mutex_, kListenAgain, [&]() REQUIRES(mutex_) { return ending_; })) return;
  }
}

bool SpotNotices::hear(const Host& host) {
  SshOptions ssh;
  ssh.config_file = ssh_config_;
  auto connection = open_program(host, ssh, {"task", "--notice", kMachineNotice}, {}, steady_clock::now() + kToListen);
  if (!connection) {
    log_debug("{}: whether it is taken away is not known: {}", host.name, connection.error().message);
    return false;
  }
  LineStream& lines = connection->stream().lines();
  while (!is_ending()) {
    connection->read_complaints();
    if (const auto line = lines.next_line()) {
      const auto value = JsonValue::parse(*line);
      if (!value) return false;
      const int64_t seconds = std::clamp<int64_t>((*value)["seconds"].integer(), 0, kSecondsMax);
      MutexLock lock(mutex_);
      notices_.push_back({host.name, (*value)["action"].text().substr(0, kActionMax), static_cast<int>(seconds)});
      return true;
    }
    if (lines.broken()) return false;
    std::vector<pollfd> polled;
    connection->add_to(polled);
    ::poll(polled.data(), polled.size(), kLookIfEndingMs);
  }
  return true;
}

}  // namespace pscloud

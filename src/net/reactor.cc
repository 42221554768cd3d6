#include "net/reactor.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/check.h"

namespace pscloud {
namespace {

constexpr uint64_t kBell = 1;
constexpr uint64_t kTimer = 2;
constexpr size_t kEventsMax = 64;  // of one turn; what is left is told in the next

bool add_to(int epoll, int fd, uint32_t events, uint64_t id) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

Result<std::unique_ptr<Reactor>> Reactor::make() {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  Fd bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  Fd timer(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  Fd interrupted(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!epoll || !bell || !timer || !interrupted || !add_to(epoll.get(), bell.get(), EPOLLIN | EPOLLET, kBell) ||
      !add_to(epoll.get(), timer.get(), EPOLLIN | EPOLLET, kTimer)) {
    return unavailable("cannot make an event loop: {}", errno_text(errno));
  }
  return std::unique_ptr<Reactor>(
      new Reactor(std::move(epoll), std::move(bell), std::move(timer), std::move(interrupted)));
}

Reactor::Reactor(Fd epoll, Fd bell, Fd timer, Fd interrupted)
    : epoll_(std::move(epoll)),
      bell_(std::move(bell)),
      timer_(std::move(timer)),
      interrupted_(std::move(interrupted)) {}

Reactor::~Reactor() = default;

Result<uint64_t> Reactor::watch(int fd, Ready ready) {
  const uint64_t id = ++last_id_;
  if (!add_to(epoll_.get(), fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, id)) {
    return unavailable("cannot watch another connection: {}", errno_text(errno));
  }
  watches_.emplace(id, std::move(ready));
  return id;
}

Result<uint64_t> Reactor::watch_bell(int bell) {
  const uint64_t id = ++last_id_;
  if (!add_to(epoll_.get(), bell, EPOLLIN | EPOLLET, id)) {
    return unavailable("cannot watch another bell: {}", errno_text(errno));
  }
  watches_.emplace(id, [](Change) {});
  return id;
}

void Reactor::unwatch(int fd, uint64_t watch) {
  if (watches_.erase(watch) > 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

Reactor::TimerId Reactor::set_timer(SteadyTime when, std::function<void()> work) {
  const TimerId id{when, ++last_id_};
  timers_.emplace(id, std::move(work));
  arm();
  return id;
}

void Reactor::clear_timer(const TimerId& timer) { timers_.erase(timer); }

// The system's timer is moved only to an earlier time: most timers are put off or cleared before they fire, and one
// that rings too early costs less than two calls for each.
void Reactor::arm() {
  if (timers_.empty() || timers_.begin()->first.first >= armed_) return;
  armed_ = timers_.begin()->first.first;
  const auto since_boot = std::max(armed_.time_since_epoch(), std::chrono::steady_clock::duration(1));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
  const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(since_boot - seconds);
  const itimerspec at{.it_interval = {}, .it_value = {.tv_sec = seconds.count(), .tv_nsec = rest.count()}};
  CHECK(timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr) == 0, "{}", errno_text(errno));
}

void Reactor::post(std::function<void()> work) {
  bool first = false;
  {
    MutexLock lock(mutex_);
    first = posted_.empty();
    posted_.push_back(std::move(work));
  }
  if (!first) return;  // the bell has been rung
  ring(bell_.get());
}

void Reactor::take_posted() {
  std::vector<std::function<void()>> posted;
  {
    MutexLock lock(mutex_);
    posted.swap(posted_);
  }
  for (auto& work : posted) work();
}

bool Reactor::turn() {
  bool did = false;
  std::array<epoll_event, kEventsMax> events;
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  bool rang = false;
  for (int i = 0; i < count; ++i) {
    const uint64_t id = events[static_cast<size_t>(i)].data.u64;
    const uint32_t what = events[static_cast<size_t>(i)].events;
    if (id == kBell) {
      uint64_t rings = 0;
      (void)!read(bell_.get(), &rings, sizeof rings);
      rang = true;
    } else if (id == kTimer) {
      uint64_t times = 0;
      (void)!read(timer_.get(), &times, sizeof times);
      armed_ = SteadyTime::max();
    } else if (const auto found = watches_.find(id); found != watches_.end()) {
      const bool failed = (what & (EPOLLERR | EPOLLHUP)) != 0;
      const Ready ready = found->second;  // it may unwatch itself
      const bool ended = failed || (what & EPOLLRDHUP) != 0;
      ready({.readable = ended || (what & EPOLLIN) != 0, .writable = failed || (what & EPOLLOUT) != 0, .ended = ended});
    }
    did = true;
  }
  if (rang) take_posted();

  if (!timers_.empty()) {
    const SteadyTime now = std::chrono::steady_clock::now();
    while (!timers_.empty() && timers_.begin()->first.first <= now) {
      const auto work = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      work();
      did = true;
    }
    arm();
  }
  // What is put here while this runs waits for the next turn: others come first.
  for (auto& work : std::exchange(later_, {})) {
    work();
    did = true;
  }
  return did;
}

bool Reactor::wait(Duration at_most, bool interruptible) const {
  // The epoll descriptor itself can be waited for: nothing is taken from it here.
  std::array<pollfd, 2> ready{{{.fd = epoll_.get(), .events = POLLIN, .revents = 0},
                               {.fd = interrupted_.get(), .events = POLLIN, .revents = 0}}};
  const int64_t us = std::clamp<int64_t>(at_most.count(), 0, 3'600'000'000);
  if (poll(ready.data(), interruptible ? 2 : 1, static_cast<int>((us + 999) / 1000)) <= 0) return false;
  uint64_t times = 0;
  if (ready[1].revents != 0) (void)!read(interrupted_.get(), &times, sizeof times);
  return true;
}

}  // namespace pscloud

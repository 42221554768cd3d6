#include "cli/agreement.h"

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace pscloud {
namespace {

constexpr std::chrono::milliseconds kLookEvery{100};  // Ctrl-C comes to another thread, and does not end a wait

}  // namespace

bool agrees(const char* question, int fd, const Cancelled& cancelled) {
  std::fputs(question, stderr);
  pollfd polled{fd, POLLIN, 0};
  while (!cancelled() && ::poll(&polled, 1, static_cast<int>(kLookEvery.count())) <= 0) continue;
  if (cancelled()) {
    std::fputs("\n", stderr);  // the question has none
    return false;
  }
  char answer[64] = {};
  return ::read(fd, answer, sizeof answer) > 0 && (answer[0] == 'y' || answer[0] == 'Y') && !cancelled();
}

}  // namespace pscloud

#include "launch/agent/keep_alive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "base/fd.h"
#include "base/log.h"

namespace pscloud {
namespace {

constexpr std::chrono::seconds kTouchEvery{5};
constexpr std::string_view kEndWord = "end\n";

}  // namespace

void KeepAlive::beat(std::chrono::steady_clock::time_point now) {
  if (now < next_) return;
  next_ = now + kTouchEvery;
  ::utimensat(AT_FDCWD, file_.c_str(), nullptr, 0);
}

void KeepAlive::end_machine() const {
  const Fd file(::open(file_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (file && ::write(file.get(), kEndWord.data(), kEndWord.size()) < 0) log_warning("{}: cannot be written", file_);
}

}  // namespace pscloud

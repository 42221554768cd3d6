#include "cli/signals.h"

#include <poll.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "base/check.h"
#include "cli/exit_code.h"

namespace pscloud {

Signals::Signals() {
  sigemptyset(&set_);
  sigaddset(&set_, SIGINT);
  sigaddset(&set_, SIGTERM);
  CHECK(pthread_sigmask(SIG_BLOCK, &set_, &before_) == 0);
}

Signals::~Signals() {
  end_watch();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Signals::watch(std::function<void(int signal)> on_signal) {
  CHECK(!thread_.joinable());
  thread_ = std::jthread([this, on_signal = std::move(on_signal)] {
    int signal = 0;
    while (sigwait(&set_, &signal) == 0 && !done_) {
      if (received_ != 0) {
        // Whatever the first one has begun, such as the removal of machines, ends here.
        static constexpr std::string_view kLastWords =
            "pscloud: interrupted twice: ends at once; `pscloud status` and `pscloud cluster ls` tell of what may be "
            "left\n";
        pollfd out{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
        const bool takes_it = ::poll(&out, 1, 0) == 1 && out.revents == POLLOUT;  // a terminal may stand still
        if (takes_it) (void)!::write(STDERR_FILENO, kLastWords.data(), kLastWords.size());
        ::_exit(kExitInterrupted);
      }
      received_ = signal;
      on_signal(signal);
    }
  });
}

void Signals::end_watch() {
  if (!thread_.joinable()) return;
  done_ = true;
  pthread_kill(thread_.native_handle(), SIGTERM);  // ends its wait
  thread_.join();
}

}  // namespace pscloud

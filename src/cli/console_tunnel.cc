#include "cli/console_tunnel.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>

#include "cli/exit_code.h"
#include "cli/signals.h"
#include "net/socket.h"

namespace pscloud {
namespace {

constexpr std::chrono::milliseconds kListenEvery{200};
Result<Fd> listen_here(int port) {
  const auto endpoints = TRY(resolve({"127.0.0.1", static_cast<uint16_t>(port)}, true));
  return listen_on(endpoints.front());
}

}  // namespace

int serve_controller(const ControllerFlags& flags, int port, const std::function<void(const std::string& url)>& show) {
  Signals signals;
  signals.watch([](int) {});
  const auto access = find_access(flags);
  if (!access) return fail(access.error());
  const auto tunnel = open_tunnel(*access);
  if (!tunnel) return fail(tunnel.error());
  if (!*tunnel) {
    show(fmt::format("{}/#token={}", access->url, access->token));
    while (signals.received() == 0) ::poll(nullptr, 0, static_cast<int>(kListenEvery.count()));
    return kExitDone;
  }
  const auto listener = listen_here(port);
  if (!listener) return fail(listener.error());
  show(fmt::format("http://{}/#token={}", local_endpoint(listener->get()).text(), access->token));
  while (signals.received() == 0) {
    pollfd polled{listener->get(), POLLIN, 0};
    if (::poll(&polled, 1, static_cast<int>(kListenEvery.count())) <= 0) continue;
    const Fd connection(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) continue;
    if (const auto carried = (*tunnel)->carry(connection); !carried) return fail(carried.error());
  }
  return kExitDone;
}

}  // namespace pscloud

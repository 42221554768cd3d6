#include "cli/console_tunnel.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <utility>

#include "cli/exit_code.h"
#include "cli/signals.h"
#include "io/http_client.h"
#include "net/address.h"
#include "net/socket.h"
#include "net/tls_tunnel.h"

namespace pscloud {
namespace {

constexpr std::chrono::milliseconds kListenEvery{200};

Result<Fd> listen_here(int port) {
  const auto endpoints = TRY(resolve({"127.0.0.1", static_cast<uint16_t>(port)}, true));
  return listen_on(endpoints.front());
}

// A controller's authority is its own, and no browser knows it.
Result<std::unique_ptr<TlsTunnel>> open_tls(const ControllerAccess& access) {
  auto address = parse_address(host_of(access.url));
  if (!address) address = parse_address(fmt::format("{}:443", host_of(access.url)));
  if (!address) return address.error();
  return TlsTunnel::open(*address, access.ca_pem).at("the controller is not reached");
}

}  // namespace

int serve_controller(const ControllerFlags& flags, int port, const std::function<void(const std::string& url)>& show) {
  Signals signals;
  signals.watch([](int) {});
  const auto access = find_access(flags);
  if (!access) return fail(access.error());
  const auto tunnel = open_tunnel(*access);
  if (!tunnel) return fail(tunnel.error());
  if (!*tunnel && access->url.starts_with("http://")) {
    show(fmt::format("{}/#token={}", access->url, access->token));
    while (signals.received() == 0) ::poll(nullptr, 0, static_cast<int>(kListenEvery.count()));
    return kExitDone;
  }
  std::unique_ptr<TlsTunnel> tls;
  if (!*tunnel) {
    auto opened = open_tls(*access);
    if (!opened) return fail(opened.error());
    tls = *std::move(opened);
  }
  const auto listener = listen_here(port);
  if (!listener) return fail(listener.error());
  show(fmt::format("http://{}/#token={}", local_endpoint(listener->get()).text(), access->token));
  while (signals.received() == 0) {
    pollfd polled{listener->get(), POLLIN, 0};
    if (::poll(&polled, 1, static_cast<int>(kListenEvery.count())) <= 0) continue;
    Fd connection(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) continue;
    if (tls) {
      tls->carry(std::move(connection));
      continue;
    }
    if (const auto carried = (*tunnel)->carry(connection); !carried) return fail(carried.error());
  }
  return kExitDone;
}

}  // namespace pscloud

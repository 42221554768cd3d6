#include "launch/agent/host_probe.h"

#include <fmt/core.h>
#include <poll.h>

#include <chrono>
#include <optional>

#include "base/random.h"
#include "launch/agent/port_lease.h"
#include "net/socket.h"

namespace pscloud {
namespace {

constexpr int kPortsTried = 20;

struct Call {
  Address address;
  Fd fd;
  std::optional<std::string> wrong;
};

Call begin_call(const Address& address) {
  Call call{address, {}, {}};
  const auto endpoints = resolve(address, false);
  if (!endpoints) {
    call.wrong = endpoints.error().message;
    return call;
  }
  auto fd = begin_connect(endpoints->front());
  if (fd) {
    call.fd = *std::move(fd);
  } else {
    call.wrong = fd.error().message;
  }
  return call;
}

}  // namespace

Result<ProbedSocket> listen_for_probes(const std::string& host) {
  Random random = Random::from_system();
  Error last = unavailable("no port is free");
  for (int i = 0; i < kPortsTried; ++i) {
    auto lease = PortLease::take(random);
    if (!lease) return lease.error();
    lease->let_bind();
    const Address address{host, lease->port()};
    const auto endpoints = TRY(resolve(address, true));
    auto fd = listen_on(endpoints.front());
    if (fd) return ProbedSocket{*std::move(fd), address};
    last = fd.error();
  }
  return last;
}

std::vector<std::string> probe(const std::vector<Address>& addresses, int timeout_ms) {
  std::vector<Call> calls;
  for (const Address& address : addresses) calls.push_back(begin_call(address));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (true) {
    std::vector<pollfd> polled;
    for (const Call& call : calls) {
      if (call.fd) polled.push_back({call.fd.get(), POLLOUT, 0});
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (polled.empty() || left <= 0) break;
    ::poll(polled.data(), polled.size(), static_cast<int>(left));
    size_t at = 0;
    for (Call& call : calls) {
      if (!call.fd || polled[at++].revents == 0) continue;
      if (auto reached = end_connect(call.fd.get()); !reached) call.wrong = reached.error().message;
      call.fd = Fd();
    }
  }
  std::vector<std::string> wrong;
  for (const Call& call : calls) {
    if (call.fd) wrong.push_back(fmt::format("{}: no answer within {} s", call.address.text(), timeout_ms / 1000));
    if (call.wrong) wrong.push_back(fmt::format("{}: {}", call.address.text(), *call.wrong));
  }
  return wrong;
}

}  // namespace pscloud

#include "launch/agent/port_lease.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "net/socket.h"

namespace pscloud {
namespace {

constexpr PortRange kFew{31000, 31007};

bool can_listen(uint16_t port) {
  const auto endpoints = resolve({"127.0.0.1", port}, true);
  return endpoints && listen_on(endpoints->front()).has_value();
}

TEST(PortLease, APortIsHeldUntilItMayBeBound) {
  Random random(1);
  auto lease = PortLease::take(random);
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_FALSE(can_listen(lease->port()));
  lease->let_bind();
  EXPECT_TRUE(can_listen(lease->port()));
}

TEST(PortLease, APortIsGivenOnceThoughNothingIsBoundYet) {
  std::vector<PortLease> leases;
  std::set<uint16_t> ports;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Random random(7);  // all begin at the same port
    auto lease = PortLease::take(random, kFew);
    ASSERT_TRUE(lease) << lease.error().message;
    lease->let_bind();
    ports.insert(lease->port());
    leases.push_back(*std::move(lease));
  }
  EXPECT_EQ(ports.size(), 4u);
}

TEST(PortLease, WhatOthersListenOnIsLeftOut) {
  Random random(1);
  auto probe = PortLease::take(random, kFew);
  ASSERT_TRUE(probe);
  const uint16_t port = probe->port();
  probe->let_bind();
  const Fd other = *listen_on(resolve({"127.0.0.1", port}, true)->front());
  const auto lease = PortLease::take(random, {port, port});
  ASSERT_FALSE(lease);
  EXPECT_NE(lease.error().message.find("is taken"), std::string::npos);
}

TEST(PortLease, IsGoneWithItsHolderHoweverThatDies) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    Random random(3);
    const auto lease = PortLease::take(random, {31900, 31900});
    (void)!::write(ends[1], lease ? "y" : "n", 1);
    ::pause();
    ::_exit(0);
  }
  char held = 0;
  ASSERT_EQ(::read(ends[0], &held, 1), 1);
  ASSERT_EQ(held, 'y');
  Random random(3);
  EXPECT_FALSE(PortLease::take(random, {31900, 31900}));
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  EXPECT_TRUE(PortLease::take(random, {31900, 31900}));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(PortLease, TheKernelsOwnPortsAreNotLeased) {
  const PortRange range = leased_ports();
  EXPECT_LT(range.low, range.high);
  EXPECT_GE(range.low, 20000);
  EXPECT_LE(range.high, 32767);
}

}  // namespace
}  // namespace pscloud

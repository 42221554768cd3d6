#include "cli/bench/bench_adder_launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/bench/bench_adder_peers.h"

namespace pscloud {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Pair;

AdderFlags two_and_three() {
  AdderFlags flags;
  flags.cluster.servers = 2;
  flags.cluster.server_threads = 4;
  flags.cluster.workers = 3;
  flags.plan.size_mb = 1.5;
  return flags;
}

TEST(AdderLaunch, IsASchedulerServersAndWorkers) {
  const auto job = adder_launch_job(two_and_three(), {});
  ASSERT_TRUE(job) << job.error().message;
  ASSERT_EQ(job->roles.size(), 3u);
  EXPECT_EQ(job->roles[0].role, TaskRole::kScheduler);
  EXPECT_EQ(job->roles[1].count, 2);
  EXPECT_THAT(job->roles[1].environment, Contains(Pair("PSCLOUD_OWNERS", "4")));
  EXPECT_EQ(job->roles[2].count, 3);
  EXPECT_THAT(job->roles[2].commands,
              ElementsAre(ElementsAre("pscloud", "bench", "adder", "--as-task", "--size-mb", "1.5", "--mode", "sync",
                                      "--iters", "100", "--warmup", "3")));
  EXPECT_FALSE(job->worker_may_fail);  // the sums would be others
  EXPECT_FALSE(job->roles[1].secrets.empty());
}

TEST(AdderLaunch, TheTransportIsAsTheUserSays) {
  AdderFlags flags = two_and_three();
  EXPECT_THAT(adder_launch_job(flags, {})->environment, IsEmpty());  // shared memory where it can be, else TLS
  flags.cluster.transport.name = "tls";
  EXPECT_THAT(adder_launch_job(flags, {})->environment, ElementsAre(Pair("PSCLOUD_SHARED_MEMORY", "0")));
  flags.cluster.transport.name = "tcp";
  const auto job = adder_launch_job(flags, {});
  EXPECT_THAT(job->environment, Contains(Pair("PSCLOUD_INSECURE", "1")));
  EXPECT_THAT(job->roles[1].secrets, IsEmpty());  // no certificates
}

TEST(AdderPeers, EachHasItsScriptInThisProgram) {
  for (const AdderPeer& peer : adder_peers()) {
    const Job job = adder_peer_job(peer, two_and_three(), false, "python3");
    int named = 0;
    for (const TaskFile& file : job.secrets) {
      EXPECT_FALSE(file.content.empty());
      named += file.variable == "PSCLOUD_ADDER_SCRIPT" ? 1 : 0;
    }
    EXPECT_EQ(named, 1) << peer.name;
    ASSERT_EQ(job.roles.size(), 2u);
    EXPECT_EQ(job.roles[0].count, 2);
    EXPECT_EQ(job.roles[1].count, 3);
    EXPECT_THAT(job.roles[0].commands, ElementsAre(IsSupersetOf({"python3", "--task", "--mode", "sync"})));
  }
}

TEST(AdderPeers, WarmUpAsTheySeeFitUnlessTheUserSays) {
  const AdderPeer& peer = adder_peers().front();
  EXPECT_THAT(adder_peer_job(peer, two_and_three(), false, "python3").roles[0].commands[0],
              testing::Not(Contains("--warmup")));
  EXPECT_THAT(adder_peer_job(peer, two_and_three(), true, "python3").roles[0].commands[0], Contains("--warmup"));
}

}  // namespace
}  // namespace pscloud

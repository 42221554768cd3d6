#include "engine/sim/sim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "base/log.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

// PSCLOUD_SEED=7 replays one.
std::vector<uint64_t> seeds() {
  if (const char* seed = std::getenv("PSCLOUD_SEED")) return {std::strtoull(seed, nullptr, 10)};
  std::vector<uint64_t> all;
  for (uint64_t seed = 1; seed <= 300; ++seed) all.push_back(seed);
  return all;
}

class ClusterSim : public testing::Test {
 protected:
  // The nodes of hundreds of clusters would say more than anybody reads.
  void SetUp() override { set_log_level(LogLevel::kSilent); }
  void TearDown() override { set_log_level(LogLevel::kInfo); }
};

TEST_F(ClusterSim, KeepsItsRulesUnderAnySeed) {
  for (const uint64_t seed : seeds()) {
    const SimReport report = simulate(seed);
    ASSERT_EQ(report.violation, "") << "PSCLOUD_SEED=" << seed << "\n" << report.trace;
  }
}

TEST_F(ClusterSim, RepeatsARunFromItsSeed) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const SimReport first = simulate(seed);
    const SimReport second = simulate(seed);
    EXPECT_EQ(first.steps, second.steps) << seed;
    EXPECT_EQ(first.virtual_seconds, second.virtual_seconds) << seed;
    EXPECT_EQ(first.faults, second.faults) << seed;
    EXPECT_EQ(first.failed_because, second.failed_because) << seed;
  }
}

TEST_F(ClusterSim, BreaksEverythingThereIsToBreak) {
  const SimSummary summary = simulate_seeds(1, 300, 1);
  for (const char* kind :
       {"lost", "repeated", "reordered", "delayed", "cut", "partitioned", "partition", "one-way partition", "paused",
        "worker crash", "server crash", "scheduler crash", "power cut", "killed", "request given up"}) {
    EXPECT_TRUE(summary.faults.contains(kind)) << kind;
  }
  EXPECT_GT(summary.jobs_failed, 0u);
  EXPECT_LT(summary.jobs_failed, summary.seeds / 2);
  for (const char* why : {"a server crashed", "a worker died", "every worker died", "not everybody came"}) {
    EXPECT_TRUE(summary.failed_because.contains(why)) << why;
  }
}

// Switched off, a part of the protocol is missed: the rules are not empty.
SimReport first_violation(const Sabotage& sabotage) { return simulate_seeds(1, 2000, 1, sabotage).first; }

TEST_F(ClusterSim, NoticesThatPushesCountTwiceWithoutTheirNumbers) {
  const SimReport report = first_violation({.no_dedup = true});
  EXPECT_NE(report.violation.find("counts twice"), std::string::npos) << report.violation;
  EXPECT_NE(report.trace, "");
}

TEST_F(ClusterSim, NoticesThatReadsAreStaleWithoutTheGate) {
  const SimReport report = first_violation({.no_gate = true});
  EXPECT_THAT(report.violation, testing::AnyOf(HasSubstr("staler"), HasSubstr("bsp read"), HasSubstr("too far ahead")));
}

TEST_F(ClusterSim, NoticesThatQueuesGrowWithoutTheirBound) {
  const SimReport report = first_violation({.no_bound = true});
  EXPECT_NE(report.violation.find("bytes"), std::string::npos) << report.violation;
}

TEST_F(ClusterSim, NoticesThatWorkIsLostIfAnswersAboutItAreNotKept) {
  EXPECT_NE(first_violation({.no_memo = true}).violation, "");
}

TEST_F(ClusterSim, NamesTheLowestSeedOfSeveralThreads) {
  const SimSummary one = simulate_seeds(1, 2000, 1, {.no_dedup = true});
  const SimSummary two = simulate_seeds(1, 2000, 2, {.no_dedup = true});
  EXPECT_EQ(one.first.seed, two.first.seed);
}

}  // namespace
}  // namespace pscloud

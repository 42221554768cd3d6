#include "cli/bench/bench_adder_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace pscloud {
namespace {

using testing::HasSubstr;
using testing::Not;

// An iteration of 80 ms; limits of 10, 5, 8 and 40 ms.
AdderOutcome outcome_of(size_t workers) {
  AdderOutcome outcome;
  outcome.samples.assign(workers, std::vector<AdderSample>(3, {50, 30, 80, 0.1}));
  outcome.add_ms = {10, 10};
  outcome.add2_ms = {5, 5};
  outcome.copy_ms = {8, 8};
  outcome.socket_ms = {40, 40};
  return outcome;
}

TEST(AdderReport, TheLimitOfASocketIsASocket) {
  AdderFlags flags;
  const std::string json = adder_json(flags, outcome_of(1));
  EXPECT_THAT(json, HasSubstr("\"limit_ms\":40,\"ratio_to_limit\":2,"));
  EXPECT_THAT(json, HasSubstr("\"limit_socket_ms\":40"));
  EXPECT_THAT(adder_text(flags, outcome_of(1)), HasSubstr("took 2.00 times the limit (raw socket, both ways)"));
}

TEST(AdderReport, WithoutSocketsTheLimitIsTheAddOnAsManyCoresAsServersHave) {
  AdderFlags flags;
  flags.cluster.transport.name = "inproc";
  AdderOutcome outcome = outcome_of(1);
  outcome.socket_ms.clear();
  EXPECT_THAT(adder_json(flags, outcome), HasSubstr("\"limit_ms\":10,\"ratio_to_limit\":8,"));
  EXPECT_THAT(adder_json(flags, outcome), Not(HasSubstr("limit_socket_ms")));
  flags.cluster.server_threads = 2;
  EXPECT_THAT(adder_json(flags, outcome), HasSubstr("\"limit_ms\":5,\"ratio_to_limit\":16,"));
}

TEST(AdderReport, TheRateCountsBothDirectionsOfAllWorkers) {
  AdderFlags flags;
  flags.plan.size_mb = 100;
  // 2 x 100 MB x 2 workers in 80 ms.
  EXPECT_THAT(adder_json(flags, outcome_of(2)), HasSubstr("\"gb_per_s\":5,"));
}

TEST(AdderReport, TheRateIsThatOfAllUntilTheLastIsDone) {
  AdderFlags flags;
  flags.plan.size_mb = 100;
  AdderOutcome outcome = outcome_of(2);
  outcome.samples[1][0].iteration_ms = 160;
  outcome.samples[1][1].iteration_ms = 240;
  // 2 x 100 MB x 6 iterations in 160 + 240 + 80 ms.
  EXPECT_THAT(adder_json(flags, outcome), HasSubstr("\"gb_per_s\":2.5,"));
}

TEST(AdderReport, WhatIsUnknownIsNullOrLeftOut) {
  AdderFlags flags;
  flags.plan.sync = false;
  AdderOutcome outcome = outcome_of(1);
  outcome.cpu_worker_s = outcome.cpu_server_s = std::nan("");
  const std::string json = adder_json(flags, outcome);
  EXPECT_THAT(json, HasSubstr("\"push_ms_p50\":null,\"pull_ms_p50\":null"));
  EXPECT_THAT(json, HasSubstr("\"cpu_worker_s\":null,\"cpu_server_s\":null"));
  EXPECT_THAT(json, Not(HasSubstr("apart_ms_p50")));
  EXPECT_THAT(adder_text(flags, outcome), Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace pscloud

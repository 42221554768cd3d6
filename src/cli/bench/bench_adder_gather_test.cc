#include "cli/bench/bench_adder_gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace pscloud {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AdderGatherTest : public testing::Test {
 protected:
  AdderGatherTest() {
    flags_.iters = 2;
    flags_.cluster.servers = 2;
    flags_.cluster.workers = 2;
  }

  void arrive(TaskRole role, int index, const std::string& host) {
    gather_.look({.kind = TaskEvent::Kind::kArrived, .task = {role, index}, .host = "m-" + host, .address = {host, 1}});
  }
  LineLook say(int worker, const std::string& text, bool is_stderr = false) {
    return gather_.look({.task = {TaskRole::kWorker, worker}, .text = text, .is_stderr = is_stderr});
  }
  void tell_all(int worker) {
    say(worker, "adder ready tls");
    for (int i = 0; i < flags_.iters; ++i) say(worker, "adder " + encode_sample({3, 2, 6, 0.5}));
    say(worker, "adder values ok");
  }

  AdderFlags flags_;
  std::vector<double> steps_, pushes_;
  AdderGather gather_{flags_, [this](const AdderSample& sample, const AdderSample& split) {
                        steps_.push_back(sample.iteration_ms);
                        pushes_.push_back(split.push_ms);
                      }};
};

TEST_F(AdderGatherTest, MakesAnOutcomeOfWhatWorkersSay) {
  tell_all(0);
  EXPECT_THAT(steps_, ElementsAre(6, 6));  // as they come
  tell_all(1);
  const auto outcome = gather_.outcome();
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->samples.size(), 2u);
  EXPECT_EQ(outcome->samples[1][1].push_ms, 3);
  EXPECT_EQ(outcome->transport, "tls");
  EXPECT_EQ(outcome->cpu_worker_s, 2);
  EXPECT_TRUE(std::isnan(outcome->cpu_server_s));
  EXPECT_TRUE(outcome->values_ok);
  EXPECT_THAT(steps_, ElementsAre(6, 6));  // the first worker's only
}

TEST_F(AdderGatherTest, AWorkerThatHasNotToldAllIsNamed) {
  tell_all(0);
  say(1, "adder ready tls");
  say(1, "adder " + encode_sample({1, 1, 2, 0}));
  const auto outcome = gather_.outcome();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "worker-1 has told of 1 of 2 iterations");
}

TEST_F(AdderGatherTest, OneWrongValueIsWrong) {
  tell_all(0);
  tell_all(1);
  say(1, "adder values wrong");
  EXPECT_FALSE(gather_.outcome()->values_ok);
}

TEST_F(AdderGatherTest, NonsenseIsAnErrorWithItsTask) {
  tell_all(0);
  tell_all(1);
  say(1, "adder sample much");
  const auto outcome = gather_.outcome();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::kCorrupt);
  EXPECT_THAT(outcome.error().message, HasSubstr("worker-1: "));
}

TEST_F(AdderGatherTest, ShowsComplaintsOnly) {
  EXPECT_EQ(say(0, "adder ready tls"), LineLook::kHidden);
  EXPECT_EQ(say(0, "a library's greeting"), LineLook::kHidden);
  EXPECT_EQ(say(0, "pscloud: server 1 is gone", true), LineLook::kNamed);
}

TEST_F(AdderGatherTest, AWorkerThatIsAloneHasStepsWithBothItsTimes) {
  flags_.cluster.workers = 1;
  say(0, "adder " + encode_sample({NAN, NAN, 6, 0}));
  say(0, "adder " + encode_sample({NAN, NAN, 7, 0}));
  EXPECT_THAT(steps_, IsEmpty());
  say(0, "adder apart " + encode_sample({4, 5, 9, 0}));
  EXPECT_THAT(steps_, ElementsAre(6));
  EXPECT_THAT(pushes_, ElementsAre(4));
  say(0, "adder apart " + encode_sample({4, 5, 9, 0}));
  say(0, "adder values ok");
  EXPECT_THAT(steps_, ElementsAre(6, 7));
  EXPECT_EQ(gather_.outcome()->apart.size(), 2u);
}

TEST_F(AdderGatherTest, APeerThatIsAloneHasStepsInTheEnd) {
  flags_.cluster.workers = 1;
  say(0, "adder " + encode_sample({NAN, NAN, 6, 0}));
  say(0, "adder values ok");
  EXPECT_THAT(steps_, ElementsAre(6));
}

TEST_F(AdderGatherTest, WhereAPeerIsMissingIsToldByMachine) {
  arrive(TaskRole::kServer, 0, "a");
  arrive(TaskRole::kWorker, 0, "a");
  arrive(TaskRole::kWorker, 1, "b");
  say(0, "adder missing");
  gather_.look({.task = {TaskRole::kServer, 0}, .text = "adder missing"});
  EXPECT_THAT(gather_.missing_on(), ElementsAre("m-a"));
  say(1, "adder missing");
  EXPECT_THAT(gather_.missing_on(), ElementsAre("m-a", "m-b"));
}

// An add of 10 ms and a socket of 100 ms for one tensor.
AdderOutcome with_limits(AdderGather& gather) {
  const std::string line = "adder " + encode_limits({10, 5, 8, 100, 120});
  gather.look({.task = {TaskRole::kWorker, 0}, .text = line});
  return gather.outcome().value();
}

TEST_F(AdderGatherTest, OnOneMachineTheLimitIsTheWorkOfAllWorkers) {
  for (int i = 0; i < 2; ++i) {
    arrive(TaskRole::kServer, i, "a");
    arrive(TaskRole::kWorker, i, "a");
    tell_all(i);
  }
  EXPECT_EQ(gather_.hosts(), 1);
  const AdderOutcome outcome = with_limits(gather_);
  EXPECT_THAT(outcome.add_ms, ElementsAre(20));
  EXPECT_THAT(outcome.socket_ms, ElementsAre(200));
}

TEST_F(AdderGatherTest, OnManyMachinesTheLimitIsThatOfTheBusiest) {
  for (int i = 0; i < 2; ++i) {
    arrive(TaskRole::kServer, i, "s" + std::to_string(i));
    arrive(TaskRole::kWorker, i, "w" + std::to_string(i));
    tell_all(i);
  }
  EXPECT_EQ(gather_.hosts(), 4);
  // Each server gets half of two tensors; each worker has one.
  EXPECT_THAT(with_limits(gather_).add_ms, ElementsAre(10));
  EXPECT_THAT(with_limits(gather_).socket_ms, Each(100));
}

TEST_F(AdderGatherTest, OneServerOfTwoWorkersMovesTwoTensors) {
  flags_.cluster.servers = 1;
  arrive(TaskRole::kServer, 0, "s");
  for (int i = 0; i < 2; ++i) {
    arrive(TaskRole::kWorker, i, "w" + std::to_string(i));
    tell_all(i);
  }
  const AdderOutcome outcome = with_limits(gather_);
  EXPECT_THAT(outcome.add_ms, ElementsAre(20));
  EXPECT_THAT(outcome.socket_ms, ElementsAre(200));
}

TEST_F(AdderGatherTest, ASocketThatWasNotMeasuredIsNone) {
  tell_all(0);
  tell_all(1);
  say(0, "adder unmeasured nobody has called");
  say(0, "adder " + encode_limits({10, 5, 8, NAN, NAN}));
  EXPECT_THAT(gather_.outcome()->socket_ms, IsEmpty());
  EXPECT_EQ(gather_.unmeasured(), "nobody has called");
}

}  // namespace
}  // namespace pscloud

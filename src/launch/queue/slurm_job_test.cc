#include "launch/queue/slurm_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pscloud {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

Plan slurm_plan(std::vector<std::pair<TaskRole, Resources>> tasks) {
  Plan plan;
  plan.job = "j7";
  plan.run = "ctr";
  for (const auto& [role, resources] : tasks) {
    PlannedTask task;
    task.spec.id = {role, static_cast<int>(plan.tasks.size())};
    task.resources = resources;
    plan.tasks.push_back(std::move(task));
  }
  return plan;
}

constexpr uint64_t kGigabyte = uint64_t{1} << 30;
const Resources kServer{.cpus = 2, .memory_bytes = 4 * kGigabyte, .gpus = 0};
const Resources kWorker{.cpus = 4, .memory_bytes = kGigabyte, .gpus = 1};

TEST(SlurmJob, TasksThatAskForTheSameAreOneComponent) {
  const auto components =
      slurm_components(slurm_plan({{TaskRole::kServer, {}}, {TaskRole::kWorker, {}}, {TaskRole::kWorker, {}}}), false);
  ASSERT_EQ(components.size(), 1U);
  EXPECT_EQ(components[0].count, 3);
}

TEST(SlurmJob, WhoAsksForNothingNeedsNoMachineOfItsOwn) {
  const Plan plan = slurm_plan({{TaskRole::kScheduler, {}},
                                {TaskRole::kServer, kServer},
                                {TaskRole::kWorker, kWorker},
                                {TaskRole::kWorker, kWorker},
                                {TaskRole::kEvaluator, {}}});
  const auto components = slurm_components(plan, false);
  ASSERT_EQ(components.size(), 2U);
  EXPECT_EQ(components[0].first, 0);
  EXPECT_EQ(components[0].count, 2);
  EXPECT_EQ(components[0].resources.cpus, 2);
  EXPECT_EQ(components[1].first, 2);
  EXPECT_EQ(components[1].count, 3);
}

TEST(SlurmJob, OneShapeIsTheMostOfAll) {
  const auto components =
      slurm_components(slurm_plan({{TaskRole::kServer, kServer}, {TaskRole::kWorker, kWorker}}), true);
  ASSERT_EQ(components.size(), 1U);
  EXPECT_EQ(components[0].resources.cpus, 4);
  EXPECT_EQ(components[0].resources.memory_bytes, 4 * kGigabyte);
  EXPECT_EQ(components[0].resources.gpus, 1);
}

TEST(SlurmJob, EachComponentRepeatsWhatHoldsForItAlone) {
  const Plan plan =
      slurm_plan({{TaskRole::kServer, kServer}, {TaskRole::kWorker, kWorker}, {TaskRole::kWorker, kWorker}});
  const auto words = sbatch_words(plan, {.partition = "gpu", .time = "60"}, "/shared/50% of it/slurm.out");
  EXPECT_THAT(words, ElementsAre("sbatch", "--parsable", "--export=NONE", "--no-requeue", "--job-name=pscloud-ctr-j7",
                                 "--output=/shared/50%% of it/slurm.out", "--partition=gpu", "--time=60", "--ntasks=1",
                                 "--cpus-per-task=2", "--mem-per-cpu=2048M", ":", "--partition=gpu", "--time=60",
                                 "--ntasks=2", "--cpus-per-task=4", "--mem-per-cpu=256M", "--gpus-per-task=1"));
}

TEST(SlurmJob, ATimeLimitOfTheRunIsSlurmsTooWithRoomForTheRest) {
  Plan plan = slurm_plan({{TaskRole::kWorker, {}}});
  EXPECT_THAT(sbatch_words(plan, {}, "o"), Not(Contains(HasSubstr("--time"))));
  plan.arrive_timeout_ms = 300'000;
  plan.run_timeout_ms = 3'600'000;
  plan.stop_grace_ms = 30'000;
  EXPECT_THAT(sbatch_words(plan, {}, "o"), Contains("--time=66"));
}

TEST(SlurmJob, APlainJobIsOneStepAndAHeterogeneousOneHasOneForEachComponent) {
  const std::vector<std::string> agent = {"/opt/my apps/pscloud", "queued-task", "--folder", "/shared/it's"};
  const std::string plain = slurm_script({{0, 3, {}}}, agent);
  EXPECT_THAT(plain, HasSubstr("\nsrun --export=ALL "));
  EXPECT_THAT(plain, Not(HasSubstr("het-group")));
  EXPECT_THAT(plain, HasSubstr(R"('/opt/my apps/pscloud' 'queued-task' '--folder' '/shared/it'\''s')"));
  EXPECT_THAT(plain, HasSubstr("--number-from SLURM_PROCID --number-first 0\n"));
  const std::string het = slurm_script({{0, 1, kServer}, {1, 2, kWorker}}, agent);
  EXPECT_THAT(het, HasSubstr("--het-group=0 --ntasks=1 --cpus-per-task=2 "));
  EXPECT_THAT(het, HasSubstr("--het-group=1 --ntasks=2 --cpus-per-task=4 "));
  EXPECT_THAT(het, HasSubstr("--number-first 1 &\nwait\n"));
}

TEST(SlurmJob, ReadsItsStates) {
  const auto states =
      parse_squeue("12+0|RUNNING|host[1-2]|None\n12+1|PENDING||Resources, or | so\n\nnoise\n13|NODE_FAIL|a|NodeDown\n");
  ASSERT_EQ(states.size(), 3U);
  EXPECT_EQ(states[0].nodes, "host[1-2]");
  EXPECT_FALSE(states[0].ended());
  EXPECT_TRUE(states[1].pending());
  EXPECT_EQ(states[1].reason, "Resources, or | so");
  EXPECT_TRUE(states[2].ended());
}

}  // namespace
}  // namespace pscloud

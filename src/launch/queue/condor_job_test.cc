#include "launch/queue/condor_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pscloud {
namespace {

using testing::HasSubstr;
using testing::Not;

Plan condor_plan() {
  Plan plan;
  plan.job = "j7";
  plan.run = "ctr";
  for (const TaskRole role : {TaskRole::kServer, TaskRole::kWorker, TaskRole::kWorker}) {
    PlannedTask task;
    task.spec.id = {role, role == TaskRole::kWorker ? static_cast<int>(plan.tasks.size()) - 1 : 0};
    task.spec.command = {"sh", "-c", "echo $HOME 'a b'"};
    plan.tasks.push_back(std::move(task));
  }
  return plan;
}

TEST(CondorJob, QueuesEachRoleInTheOrderOfThePlan) {
  Plan plan = condor_plan();
  plan.tasks[0].resources = {.cpus = 2, .memory_bytes = uint64_t{3} << 30, .gpus = 0};
  const auto text = condor_submit_file(plan, {.folder = "/runs/ctr", .program = "/usr/bin/pscloud", .agent = {"x"}});
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("# server\nuniverse = vanilla\nrequest_cpus = 2\nrequest_memory = 3072\nqueue 1\n"));
  // What the servers asked for does not hold on for the workers.
  EXPECT_THAT(*text, HasSubstr("# worker\nuniverse = vanilla\nrequest_cpus = 1\nrequest_memory = ifthenelse("));
  EXPECT_THAT(*text, HasSubstr("queue 2\n"));
  EXPECT_THAT(*text, Not(HasSubstr("request_gpus")));
  EXPECT_THAT(*text, HasSubstr("batch_name = pscloud-ctr-j7\n"));
  EXPECT_THAT(*text, HasSubstr("job_lease_duration = 60\n"));
}

TEST(CondorJob, NothingOfTheCommandIsInIt) {
  const auto text =
      condor_submit_file(condor_plan(), {.folder = "/runs/ctr", .program = "/usr/bin/pscloud", .agent = {"x"}});
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, Not(HasSubstr("HOME")));
}

TEST(CondorJob, AnImageIsADockerUniverseOnTheHostsNetwork) {
  Plan plan = condor_plan();
  plan.tasks[1].image = plan.tasks[2].image = "registry/my:1";
  const auto text = condor_submit_file(plan, {.folder = "/runs/ctr", .program = "p", .agent = {"x"}});
  ASSERT_TRUE(text);
  EXPECT_THAT(*text,
              HasSubstr("# worker\nuniverse = docker\ndocker_image = registry/my:1\ndocker_network_type = host\n"));
}

TEST(CondorJob, CopiesFilesAndTheSpecOfEachTask) {
  const auto text = condor_submit_file(
      condor_plan(), {.folder = "/r", .program = "p", .agent = {"x"}, .files = {"/a/b", "/c"}, .specs = "/r/spec."});
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("transfer_input_files = /a/b, /c, /r/spec.$(Process).json\n"));
}

// The rules of the manual: '' in quotes, "" for a double quote; $(DOLLAR), because $(x) is a macro even in quotes.
TEST(CondorJob, ArgumentsKeepWhatIsInThem) {
  EXPECT_EQ(*condor_arguments({"a", "b c", ""}), R"("'a' 'b c' ''")");
  EXPECT_EQ(*condor_arguments({R"x(it's "$(x)")x"}), R"x("'it''s ""$(DOLLAR)(x)""'")x");
  EXPECT_EQ(condor_arguments({"a\nb"}).error().code, Code::kInvalid);
}

TEST(CondorJob, APathThatItCannotCopyIsNamed) {
  const auto text =
      condor_submit_file(condor_plan(), {.folder = "/r", .program = "p", .agent = {"x"}, .files = {"/my data/b"}});
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().message, HasSubstr("/my data/b"));
}

}  // namespace
}  // namespace pscloud

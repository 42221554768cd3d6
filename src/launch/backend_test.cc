#include "launch/backend.h"

#include <gtest/gtest.h>

#include <set>

namespace pscloud {
namespace {

Plan plan_on(const std::string& target) {
  Plan plan;
  plan.target = target;
  plan.tasks.resize(2);
  plan.tasks[0].spec.id = {TaskRole::kServer, 0};
  plan.tasks[1].spec.id = {TaskRole::kWorker, 0};
  return plan;
}

TEST(Backend, AnImageIsRefusedWhereThereAreNoContainers) {
  std::set<std::string> refused;
  for (const BackendKind& kind : backend_kinds()) {
    Plan plan = plan_on(kind.name);
    EXPECT_TRUE(check_wishes(plan)) << kind.name;
    plan.tasks[1].image = "team/trainer:1";
    if (!check_wishes(plan)) refused.insert(kind.name);
  }
  EXPECT_EQ(refused, (std::set<std::string>{"local", "ssh", "slurm", "fake"}));

  Plan plan = plan_on("ssh");
  plan.tasks[1].image = "team/trainer:1";
  const Error error = check_wishes(plan).error();
  EXPECT_EQ(error.code, Code::kInvalid);
  EXPECT_EQ(error.message,
            "ssh has no containers, and worker-0 is to run in the image team/trainer:1: choose --on condor, --on swarm "
            "or --on kubernetes, or name no image");
}

TEST(Backend, ResourcesThatNobodyEnforcesAreNamed) {
  std::set<std::string> unheeded;
  for (const BackendKind& kind : backend_kinds()) {
    Plan plan = plan_on(kind.name);
    EXPECT_EQ(unheeded_wishes(plan), "") << kind.name;
    plan.tasks[0].resources.memory_bytes = 1;
    plan.tasks[1].resources.cpus = 2;
    EXPECT_TRUE(check_wishes(plan)) << kind.name;
    if (!unheeded_wishes(plan).empty()) unheeded.insert(kind.name);
  }
  EXPECT_EQ(unheeded, (std::set<std::string>{"local", "ssh", "fake"}));

  Plan plan = plan_on("local");
  plan.tasks[0].resources.memory_bytes = 1;
  plan.tasks[1].resources.cpus = 2;
  EXPECT_EQ(unheeded_wishes(plan),
            "local does not enforce resources: what tasks ask for (cpus, memory) is not looked at");
}

}  // namespace
}  // namespace pscloud

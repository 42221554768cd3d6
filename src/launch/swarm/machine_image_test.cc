#include "launch/swarm/machine_image.h"

#include <gtest/gtest.h>

namespace pscloud {
namespace {

Job job_running(const std::vector<std::string>& command) {
  Job job;
  RoleSpec role;
  role.commands = {command};
  job.roles = {role};
  return job;
}

std::string image_for(const Cluster& cluster, Job job) {
  EXPECT_TRUE(use_own_image(cluster, job));
  return job.roles[0].image;
}

TEST(MachineImage, IsForTasksOfOursThatNameNone) {
  Cluster cluster;
  cluster.target = "swarm";
  EXPECT_EQ(image_for(cluster, job_running({"pscloud", "train"})), "");  // nobody would bring it there
  cluster.hosts.emplace_back();
  EXPECT_TRUE(is_own_image(image_for(cluster, job_running({"pscloud", "train"}))));
  EXPECT_EQ(image_for(cluster, job_running({"./program"})), "");
  Job other = job_running({"pscloud", "train"});
  other.roles[0].image = "team/trainer:1";
  EXPECT_EQ(image_for(cluster, other), "team/trainer:1");
  cluster.image = "team/trainer:2";
  EXPECT_EQ(image_for(cluster, job_running({"pscloud", "train"})), "");
}

TEST(MachineImage, IsNamedAfterTheBuild) {
  const std::string name = own_image_name().value();
  EXPECT_EQ(name, own_image_name().value());
  EXPECT_TRUE(is_own_image(name));
  for (const char* other : {"pscloud", "pscloud:1", "pscloud/x:0123456789abcdef0123456789abcdef", "sha256:01"}) {
    EXPECT_FALSE(is_own_image(other)) << other;
  }
}

}  // namespace
}  // namespace pscloud

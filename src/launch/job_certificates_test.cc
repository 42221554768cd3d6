#include "launch/job_certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pscloud {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(JobCertificates, EachRoleGetsAKeyOfItsOwnAndNobodyThatOfTheCa) {
  Job job;
  job.run = "clicks";
  for (const TaskRole role : {TaskRole::kScheduler, TaskRole::kServer, TaskRole::kWorker}) {
    job.roles.push_back({.role = role, .commands = {}, .resources = {}, .image = {}, .environment = {}, .secrets = {}});
  }
  const auto added = add_certificates(job);
  ASSERT_TRUE(added) << added.error().message;
  for (const RoleSpec& role : job.roles) {
    ASSERT_EQ(role.secrets.size(), 3u);
    EXPECT_EQ(role.secrets[0].variable, "PSCLOUD_TLS_DIR");
    EXPECT_TRUE(role.secrets[0].name_folder);
    EXPECT_EQ(role.secrets[0].content, job.roles[0].secrets[0].content);  // the same CA
    EXPECT_THAT(role.secrets[0].content, Not(HasSubstr("PRIVATE KEY")));
    EXPECT_THAT(role.secrets[2].content, HasSubstr("PRIVATE KEY"));
  }
  EXPECT_NE(job.roles[0].secrets[2].content, job.roles[1].secrets[2].content);
}

TEST(JobCertificates, OnlyNodesOfOursWantThemIfNobodySaysOtherwise) {
  Job job;
  RoleSpec role;
  role.commands = {{"./program", "node"}};
  job.roles = {role};
  EXPECT_FALSE(wants_certificates(job));
  role.commands = {{"pscloud", "node", "--quiet"}};
  job.roles.push_back(role);
  EXPECT_TRUE(wants_certificates(job));
  job.roles[0].environment = {{"PSCLOUD_TLS_DIR", "/etc/tls"}};
  EXPECT_FALSE(wants_certificates(job));
  job.roles[0].environment.clear();
  job.environment = {{"PSCLOUD_INSECURE", "1"}};
  EXPECT_FALSE(wants_certificates(job));
}

}  // namespace
}  // namespace pscloud

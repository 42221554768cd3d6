#include "launch/job_wire.h"

#include <gtest/gtest.h>

namespace pscloud {
namespace {

TEST(JobWire, AJobArrivesWithAllThatIsInIt) {
  Job job;
  job.run = "clicks";
  job.framework = Framework::kPaddle;
  RoleSpec role;
  role.role = TaskRole::kServer;
  role.count = 2;
  role.commands = {{"a b", "'\"\n"}, {"c"}};
  role.resources = {.cpus = 3, .memory_bytes = 5ull << 40, .gpus = 1};
  role.image = "image:1";
  role.port = 5555;
  role.environment = {{"X", "1=2"}};
  role.secrets = {{"train.conf", "content", "VARIABLE", true}};
  job.roles = {role, RoleSpec()};
  job.environment = {{"Y", "\xc3\xa9"}};
  job.secrets = {{"secrets/K", "hidden", "K_FILE", false}};
  job.files = {"a.py", "lib"};
  job.workers_min = 1;
  job.worker_may_fail = job.late_workers = true;
  job.arrive_timeout_ms = 7;
  job.stop_grace_ms = 8;
  job.run_timeout_ms = int64_t{9} << 40;
  const std::string text = job_wire_json(job);
  const auto value = JsonValue::parse(text);
  ASSERT_TRUE(value);
  const auto arrived = parse_job_wire(*value);
  ASSERT_TRUE(arrived) << arrived.error().message;
  EXPECT_EQ(job_wire_json(*arrived), text);
  EXPECT_EQ(arrived->roles[0].commands, role.commands);
  EXPECT_EQ(arrived->roles[0].secrets[0].content, "content");
  EXPECT_EQ(arrived->roles[0].resources.memory_bytes, role.resources.memory_bytes);
  EXPECT_EQ(arrived->run_timeout_ms, job.run_timeout_ms);
}

TEST(JobWire, BytesThatAreNoTextArriveAsTheyAre) {
  const std::string odd = "\xff\xc3(";
  Job job;
  job.run = "odd";
  RoleSpec role;
  role.commands = {{"cat", odd}};
  role.secrets = {{"k", odd, "K_FILE", false}};
  job.roles = {role};
  job.environment = {{"ODD", odd}};
  job.files = {odd};
  const auto arrived = parse_job_wire(*JsonValue::parse(job_wire_json(job)));
  ASSERT_TRUE(arrived) << arrived.error().message;
  EXPECT_EQ(arrived->roles[0].commands, role.commands);
  EXPECT_EQ(arrived->roles[0].secrets[0].content, odd);
  EXPECT_EQ(arrived->environment[0].second, odd);
  EXPECT_EQ(arrived->files[0], odd);
}

TEST(JobWire, WhatIsNoJobIsRefused) {
  for (const char* text : {"{}", "[]", R"({"run":"../x","framework":"pscloud"})", R"({"run":"x","framework":"y"})",
                           R"({"run":"x","framework":"pscloud","roles":[{"role":"king"}]})"}) {
    EXPECT_FALSE(parse_job_wire(*JsonValue::parse(text))) << text;
  }
}

}  // namespace
}  // namespace pscloud

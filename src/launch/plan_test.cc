#include "launch/plan.h"

#include <gtest/gtest.h>

namespace pscloud {
namespace {

Job job_of(int servers, int workers) {
  Job job;
  job.run = "clicks";
  job.roles = {{.role = TaskRole::kServer, .count = servers, .commands = {{"serve"}}},
               {.role = TaskRole::kWorker, .count = workers, .commands = {{"work", "a b"}}}};
  return job;
}

Host host_of(const std::string& name, int slots = 0, std::vector<TaskRole> roles = {}) {
  Host host;
  host.name = host.address = name;
  host.slots = slots;
  host.roles = std::move(roles);
  return host;
}

std::vector<std::string> hosts_of(const Plan& plan) {
  std::vector<std::string> hosts;
  for (const PlannedTask& task : plan.tasks) hosts.push_back(task.spec.id.text() + " " + task.host);
  return hosts;
}

std::string error_of(const Job& job, const Cluster& cluster) {
  const auto plan = make_plan(job, cluster, "j1");
  return plan ? "" : plan.error().message;
}

TEST(Plan, TheHostWithTheFewestTasksIsNext) {
  Cluster cluster;
  cluster.hosts = {host_of("a"), host_of("b"), host_of("c", 1)};
  const auto plan = make_plan(job_of(1, 4), cluster, "j1");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(hosts_of(*plan),
            (std::vector<std::string>{"server-0 a", "worker-0 b", "worker-1 c", "worker-2 a", "worker-3 b"}));
}

TEST(Plan, HostsWithARoleAreForThatRoleInTheirOrder) {
  Cluster cluster;  // as a file of psd_run gives it
  cluster.hosts = {host_of("w1", 0, {TaskRole::kWorker}), host_of("w1", 0, {TaskRole::kWorker}),
                   host_of("w2", 0, {TaskRole::kWorker}), host_of("w2", 0, {TaskRole::kServer})};
  const auto plan = make_plan(job_of(1, 3), cluster, "j1");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(hosts_of(*plan), (std::vector<std::string>{"server-0 w2", "worker-0 w1", "worker-1 w1", "worker-2 w2"}));
}

TEST(Plan, EachHostThatHasTasksCostsOnce) {
  Cluster cluster;
  cluster.cost_usd_per_hour = 0.5;
  cluster.hosts = {host_of("a", 0, {TaskRole::kWorker}), host_of("a", 0, {TaskRole::kServer}),
                   host_of("b", 0, {TaskRole::kWorker}), host_of("c", 0, {TaskRole::kEvaluator})};
  for (Host& host : cluster.hosts) host.cost_usd_per_hour = host.name == "b" ? 0.25 : 2;
  const auto plan = make_plan(job_of(1, 3), cluster, "j1");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->cost_usd_per_hour, 0.5 + 2 + 0.25);
  EXPECT_EQ(parse_plan(plan_json(*plan))->cost_usd_per_hour, plan->cost_usd_per_hour);
  EXPECT_NE(plan_text(*plan).find("costs 2.75 USD an hour\n"), std::string::npos);
  cluster.hosts[3].cost_unknown = true;  // that has no task
  EXPECT_FALSE(make_plan(job_of(1, 3), cluster, "j1")->cost_incomplete);
  cluster.hosts[2].cost_unknown = true;
  const auto more = make_plan(job_of(1, 3), cluster, "j1");
  EXPECT_TRUE(parse_plan(plan_json(*more))->cost_incomplete);
  EXPECT_NE(plan_text(*more).find("costs more than 2.75 USD an hour\n"), std::string::npos);
}

TEST(Plan, WhatDoesNotFitIsSaidWithBothNumbers) {
  Cluster cluster;
  cluster.hosts = {host_of("a", 2), host_of("b", 2)};
  EXPECT_EQ(error_of(job_of(1, 4), cluster),
            "4 workers do not fit: the hosts for them have 4 slots, and 3 of them are left for this role");
  cluster.hosts = {host_of("a", 0, {TaskRole::kWorker})};
  EXPECT_EQ(error_of(job_of(1, 1), cluster), "no host of the cluster is for the role server");
}

TEST(Plan, AJobThatCannotBeIsRefused) {
  const Cluster cluster;
  EXPECT_NE(error_of(job_of(0, 0), cluster).find("no tasks"), std::string::npos);
  Job job = job_of(0, 3);
  job.roles[1].commands = {{"a"}, {"b"}};
  EXPECT_EQ(error_of(job, cluster),
            "there are 2 commands for 3 tasks of the role worker: give one for all, or one for each");
  job.roles[1].commands = {};
  EXPECT_NE(error_of(job, cluster).find("no command for the role worker"), std::string::npos);
  job.roles[1].image = "img";
  EXPECT_EQ(error_of(job, cluster), "") << "an image has its own";
  job = job_of(0, 2);
  job.workers_min = 3;
  EXPECT_NE(error_of(job, cluster).find("begin with 3 workers, and has 2"), std::string::npos);
}

TEST(Plan, NamesOfRunsAreSafeEverywhere) {
  for (const char* good : {"a", "clicks-2", "x0123456789012345678901234567890123456"})
    EXPECT_TRUE(check_run_name(good));
  for (const char* bad :
       {"", "A", "1a", "-a", "a-", "a_b", "a/b", "..", "a b", "x0123456789012345678901234567890123456789"}) {
    EXPECT_FALSE(check_run_name(bad)) << bad;
  }
}

TEST(Plan, ACommandForEachTask) {
  Job job = job_of(0, 2);
  job.roles[1].commands = {{"a"}, {"b"}};
  const auto plan = make_plan(job, {}, "j1");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->tasks[1].spec.command, std::vector<std::string>{"b"});
}

TEST(Plan, TheNearerVariableWins) {
  Job job = job_of(0, 1);
  job.environment = {{"A", "job"}, {"B", "job"}};
  job.roles[1].environment = {{"B", "role"}};
  Cluster cluster;
  cluster.environment = {{"A", "cluster"}, {"C", "cluster"}};
  cluster.virtualenv = "/env";
  const auto plan = make_plan(job, cluster, "j1");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->tasks[0].spec.environment,
            (Variables{{"VIRTUAL_ENV", "/env"}, {"A", "job"}, {"C", "cluster"}, {"B", "role"}}));
}

TEST(Plan, SecretsStandInNoTextOfIt) {
  Job job = job_of(1, 1);
  job.secrets = {{"secrets/TOKEN", "s3cret-value", "TOKEN_FILE", false}};
  job.roles[0].secrets = {{"tls/key", "s3cret-value", "", false}};
  const auto plan = make_plan(job, {}, "j1");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->tasks[0].spec.files.size(), 2u);
  EXPECT_EQ(plan_text(*plan).find("s3cret-value"), std::string::npos);
  EXPECT_EQ(plan_json(*plan).find("s3cret-value"), std::string::npos);
}

TEST(Plan, IsTheSameAfterItsWay) {
  Job job = job_of(1, 2);
  job.roles[1].commands = {{"sh", "-c", "echo '$x' \"*\"\n"}};
  job.files = {"data"};
  job.workers_min = 1;
  job.worker_may_fail = true;
  job.run_timeout_ms = 5000000000;
  Cluster cluster;
  cluster.hosts = {host_of("a")};
  cluster.hosts[0].interface = "eth1";
  cluster.resources = {{TaskRole::kWorker, {.cpus = 2, .memory_bytes = 1ull << 40, .gpus = 1}}};
  const auto plan = make_plan(job, cluster, "j1");
  ASSERT_TRUE(plan) << plan.error().message;
  const auto back = parse_plan(plan_json(*plan));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(plan_json(*back), plan_json(*plan));
  EXPECT_EQ(back->tasks[2].spec.command, plan->tasks[2].spec.command);
  EXPECT_EQ(back->tasks[2].spec.job, "j1");
  EXPECT_EQ(back->tasks[2].spec.advertise, "eth1");
  EXPECT_TRUE(back->tasks[1].ends_job);
  EXPECT_FALSE(back->tasks[0].ends_job);
  EXPECT_FALSE(parse_plan("{}"));
  EXPECT_FALSE(parse_plan(""));
}

TEST(Plan, ATextForPeople) {
  Job job = job_of(1, 1);
  job.arrive_timeout_ms = 60000;
  const auto plan = make_plan(job, {}, "j1");
  EXPECT_EQ(plan_text(*plan),
            "run clicks on local: 1 server, 1 worker (pscloud)\n"
            "TASK           WHERE  RESOURCES            COMMAND\n"
            "server-0       any    any                  serve\n"
            "worker-0       any    any                  work 'a b'\n"
            "all must have arrived within 60 s; to stop takes 30 s at most\n");
}

}  // namespace
}  // namespace pscloud

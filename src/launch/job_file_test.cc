#include "launch/job_file.h"

#include <gtest/gtest.h>

namespace pscloud {
namespace {

TEST(JobFile, HasACommandForEachRole) {
  const auto file = parse_job_file(R"({
    "name": "clicks", "on": "cluster.json", "framework": "dmlc", "command": ["./work", "a b"],
    "roles": {"server": {"count": 2, "command": ["./serve"], "resources": {"memory": "1G"}},
              "worker": {"count": 2, "environment": {"A": "1"}}},
    "arrive_timeout_s": 5, "timeout_s": 100, "workers_min": 1, "worker_may_fail": true})",
                                   "job.json");
  ASSERT_TRUE(file) << file.error().message;
  const Job& job = file->job;
  EXPECT_EQ(file->on, "cluster.json");
  EXPECT_EQ(job.run, "clicks");
  EXPECT_EQ(job.framework, Framework::kDmlc);
  EXPECT_EQ(job.arrive_timeout_ms, 5000);
  EXPECT_EQ(job.run_timeout_ms, 100000);
  ASSERT_EQ(job.roles.size(), 2u);
  EXPECT_EQ(job.roles[0].commands, (std::vector<std::vector<std::string>>{{"./serve"}}));
  EXPECT_EQ(job.roles[0].resources.memory_bytes, 1u << 30);
  EXPECT_EQ(job.roles[1].commands, (std::vector<std::vector<std::string>>{{"./work", "a b"}}));
}

TEST(JobFile, MistakesAreNamedByPlace) {
  const auto error = [](const char* text) {
    const auto file = parse_job_file(text, "job.json");
    return file ? "" : file.error().message;
  };
  EXPECT_EQ(error("{\"role\": {}}"), "job.json:1:10: a job file has no 'role'; did you mean 'roles'?");
  EXPECT_EQ(error("{\"roles\": {\"ps\": {}}}"),
            "job.json:1:18: 'ps' is no role: one of scheduler, server, chief, worker, evaluator");
  EXPECT_EQ(error("{\"roles\": {\"worker\": {\"command\": \"ls\"}}}"),
            "job.json:1:34: a command is a list of words: [\"python3\", \"train.py\"]");
  EXPECT_EQ(error("{\"framework\": \"tf\"}").substr(0, 22), "job.json:1:15: 'tf' is");
}

TEST(JobFile, ARunIsCalledAfterWhatItRuns) {
  EXPECT_EQ(run_name_of({"python3", "/x/Train_Model.py", "--lr"}), "train-model");
  EXPECT_EQ(run_name_of({"./my.prog"}), "my");
  EXPECT_EQ(run_name_of({"sh", "-c", "echo"}), "sh");
  EXPECT_EQ(run_name_of({"/bin/[", "1"}), "run");
  EXPECT_EQ(run_name_of({"7zip"}), "zip");
  EXPECT_EQ(run_name_of({}), "run");
  EXPECT_TRUE(check_run_name(run_name_of({std::string(100, 'a') + "-"})));
}

}  // namespace
}  // namespace pscloud

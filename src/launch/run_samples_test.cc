#include "launch/run_samples.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/fd.h"
#include "base/json_value.h"
#include "launch/metrics_csv.h"

namespace pscloud {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using Kind = TaskEvent::Kind;

constexpr TaskId kSampledScheduler{TaskRole::kScheduler, 0};
constexpr TaskId kSampledServer{TaskRole::kServer, 0};
constexpr TaskId kSampledWorker{TaskRole::kWorker, 0};

class RunSamplesTest : public testing::Test {
 protected:
  RunSamplesTest() {
    fs::create_directories(folder_);
    for (const TaskId id : {kSampledScheduler, kSampledServer, kSampledWorker, TaskId{TaskRole::kWorker, 1}}) {
      PlannedTask task;
      task.spec.id = id;
      plan_.tasks.push_back(task);
    }
  }
  ~RunSamplesTest() override { fs::remove_all(folder_); }

  std::string file(const char* name) const {
    std::ostringstream all;
    all << std::ifstream(folder_ / name).rdbuf();
    return all.str();
  }
  static TaskEvent sample(TaskId task, Figures figures, std::string status = "") {
    return {.kind = Kind::kSample, .task = task, .text = std::move(status), .figures = std::move(figures)};
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / fmt::format("run-samples-{}", ::getpid());
  Plan plan_;
};

TEST_F(RunSamplesTest, SamplesAndFiguresOfLinesAreRows) {
  RunSamples samples(folder_.string(), plan_);
  samples.take(sample(kSampledServer, {{"cpu_percent", 12.5}, {"memory_bytes", 1 << 30}}), 1000);
  samples.take({.kind = Kind::kLine, .task = kSampledWorker, .text = "**metrics_data: loss=0.25, auc = 0.75,bad=x"},
               1001);
  samples.take({.kind = Kind::kLine, .task = kSampledWorker, .text = "loss=9"}, 1002);
  samples.take({.kind = Kind::kRunning, .task = kSampledWorker}, 1003);
  samples.finish();
  EXPECT_EQ(file("samples.csv"),
            "1000,server-0,cpu_percent,12.5\n1000,server-0,memory_bytes,1073741824\n"
            "1001,worker-0,loss,0.25\n1001,worker-0,auc,0.75\n");
  EXPECT_EQ(samples.trouble(), "");
}

TEST_F(RunSamplesTest, ARunWithoutSamplesHasNoFiles) {
  RunSamples samples(folder_.string(), plan_);
  samples.take({.kind = Kind::kLine, .task = kSampledWorker, .text = "hello"}, 1);
  samples.finish();
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(RunSamplesTest, TheLastStatusOfEachNodeStandsInOneFile) {
  RunSamples samples(folder_.string(), plan_);
  samples.take(sample(kSampledServer, {}, R"({"role":"server","clock":1})"), 1);
  samples.take(sample(kSampledWorker, {}, R"({"role":"worker"})"), 2);
  samples.take(sample(kSampledServer, {{"keys", 3}}, R"({"role":"server","clock":2})"), 3);
  samples.take(sample(kSampledServer, {{"keys", 4}}), 4);  // as before
  samples.finish();
  const auto nodes = JsonValue::parse(file("nodes.json"));
  ASSERT_TRUE(nodes) << nodes.error().message;
  EXPECT_EQ((*nodes)["server-0"]["clock"].integer(), 2);
  EXPECT_EQ((*nodes)["worker-0"]["role"].text(), "worker");
}

TEST_F(RunSamplesTest, WhatTheSchedulerKnowsOfOthersIsAFigureOfTheirs) {
  const std::string status = R"({"role":"scheduler","nodes":[
      {"role":"server","rank":0,"state":"live","heard_ms_ago":5},
      {"role":"server","rank":0,"state":"live","heard_ms_ago":7},
      {"role":"worker","rank":1,"state":"live","heard_ms_ago":9},
      {"role":"worker","rank":0,"state":"dead","heard_ms_ago":8}]})";
  RunSamples samples(folder_.string(), plan_);
  samples.take(sample(kSampledScheduler, {{"heartbeat_age_ms", 9}}, status), 1);
  samples.finish();
  EXPECT_THAT(file("samples.csv"), HasSubstr("1,server-0,heartbeat_age_ms,7\n"));
  EXPECT_THAT(file("samples.csv"), HasSubstr("1,worker-1,heartbeat_age_ms,9\n"));
  EXPECT_THAT(file("samples.csv"), Not(HasSubstr("worker-0")));
}

TEST_F(RunSamplesTest, RanksThatAreNoTasksAreNotTakenForSome) {
  // Two threads in each of two tasks are four workers.
  const std::string status = R"({"nodes":[{"role":"worker","rank":0,"state":"live","heard_ms_ago":5},
      {"role":"worker","rank":3,"state":"live","heard_ms_ago":5}]})";
  RunSamples samples(folder_.string(), plan_);
  samples.take(sample(kSampledScheduler, {{"heartbeat_age_ms", 5}}, status), 1);
  samples.finish();
  EXPECT_EQ(file("samples.csv"), "1,scheduler-0,heartbeat_age_ms,5\n");
}

// A pipe that nobody reads yet stands for a disk that takes nothing.
TEST_F(RunSamplesTest, ADiskThatTakesNothingDoesNotHoldUpWhoMeasures) {
  ASSERT_EQ(::mkfifo((folder_ / "samples.csv").c_str(), 0600), 0);
  const Fd pipe(::open((folder_ / "samples.csv").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(pipe);
  RunSamples samples(folder_.string(), plan_);
  for (int i = 0; i < 300000; ++i) samples.take(sample(kSampledServer, {{"cpu_percent", 12.5}}), i);
  std::jthread reader([&](const std::stop_token& stop) {
    std::array<char, 64 << 10> bytes;
    pollfd polled{pipe.get(), POLLIN, 0};
    while (!stop.stop_requested()) {
      ::poll(&polled, 1, 10);
      (void)!::read(pipe.get(), bytes.data(), bytes.size());
    }
  });
  samples.finish();
  EXPECT_THAT(samples.trouble(), HasSubstr("samples were not written: the disk is too slow"));
}

TEST(FiguresOfLine, OnlyAMarkedLineHasFigures) {
  EXPECT_EQ(figures_of_line("**metrics_data: loss=1e-3,auc=0.5"), (Figures{{"loss", 1e-3}, {"auc", 0.5}}));
  EXPECT_TRUE(figures_of_line("metrics_data: loss=1").empty());
  EXPECT_TRUE(figures_of_line("**metrics_data: a b=1,=2,c").empty());
}

}  // namespace
}  // namespace pscloud

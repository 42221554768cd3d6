#include "cli/train/train_launch.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace pscloud {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr TaskId kFirst{TaskRole::kWorker, 0};
constexpr TaskId kSecond{TaskRole::kWorker, 1};
constexpr TaskId kServer{TaskRole::kServer, 0};

class TrainLaunch : public testing::Test {
 protected:
  TrainLaunch() : path_(testing::TempDir() + "train_launch_test.conf") {
    std::ofstream(path_) << "loss { type: LOGIT }";
    train_.config.file = path_;
    train_.counts.servers = 2;
    train_.counts.workers = 3;
    train_.counts.threads = 4;
  }
  ~TrainLaunch() override { std::filesystem::remove(path_); }

  const std::string path_;
  TrainJob train_;
};

TEST_F(TrainLaunch, IsASchedulerServersAndWorkersThatTrain) {
  train_.config.strict = true;
  const auto job = train_launch_job(train_, {.tensorboard = "tb", .quiet = true, .json = false}, {});
  ASSERT_TRUE(job) << job.error().message;
  ASSERT_EQ(job->roles.size(), 3u);
  EXPECT_EQ(job->roles[0].role, TaskRole::kScheduler);
  EXPECT_THAT(job->roles[0].environment, Contains(Pair("PSCLOUD_WORKERS", "12")));  // threads
  EXPECT_EQ(job->roles[1].count, 2);
  EXPECT_THAT(job->roles[1].commands, ElementsAre(ElementsAre("pscloud", "node")));
  ASSERT_EQ(job->roles[2].commands.size(), 3u);
  EXPECT_THAT(job->roles[2].commands[0],
              ElementsAre("pscloud", "train", "--threads", "4", "--strict", "--quiet", "--tensorboard", "tb"));
  EXPECT_THAT(job->roles[2].commands[1], ElementsAre("pscloud", "train", "--threads", "4", "--strict", "--quiet"));
  EXPECT_TRUE(job->worker_may_fail);
  EXPECT_TRUE(job->late_workers);
}

TEST_F(TrainLaunch, NobodyJoinsBatchTrainingLate) {
  train_.config.appended = "darlin {}";
  const auto job = train_launch_job(train_, {}, {});
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_FALSE(job->late_workers);
}

TEST_F(TrainLaunch, NobodyJoinsSynchronousTrainingLate) {
  for (const bool synchronous : {false, true}) {
    train_.config.assignments = {fmt::format("async_sgd.synchronous={}", synchronous)};
    const auto job = train_launch_job(train_, {}, {});
    ASSERT_TRUE(job) << job.error().message;
    EXPECT_EQ(job->late_workers, !synchronous);
  }
}

TEST_F(TrainLaunch, TheConfigTravelsWithAllThatTheFlagsSay) {
  train_.config.appended = "penalty { type: L1 lambda: 3 }";
  train_.config.assignments = {"loss.type=SQUARE"};
  const auto job = train_launch_job(train_, {}, {});
  ASSERT_TRUE(job) << job.error().message;
  const TaskFile& config = job->roles[2].secrets.back();
  EXPECT_EQ(config.variable, "PSCLOUD_CONFIG");
  EXPECT_THAT(config.content, HasSubstr("SQUARE"));
  EXPECT_THAT(config.content, HasSubstr("lambda: 3"));
  EXPECT_EQ(job->roles[0].secrets.size(), 3u);  // certificates only
}

TaskEvent line_of(TaskId task, std::string text, bool is_stderr = false) {
  TaskEvent event;
  event.task = task;
  event.text = std::move(text);
  event.is_stderr = is_stderr;
  return event;
}

TaskEvent end_of(TaskId task, int signal) {
  TaskEvent event;
  event.kind = TaskEvent::Kind::kExited;
  event.task = task;
  event.signal = signal;
  return event;
}

TEST_F(TrainLaunch, WhoMayComeLateHasAPlace) {
  JobFlags flags;
  flags.workers_min = 2;
  const auto job = train_launch_job(train_, {}, flags);
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->workers_min, 2);
  EXPECT_THAT(job->roles[0].environment, ElementsAre(Pair("PSCLOUD_WORKERS", "12"), Pair("PSCLOUD_WORKERS_MIN", "8")));
}

TEST(TrainVoice, OneWorkerSpeaksForAllUntilItDies) {
  TrainVoice voice;
  EXPECT_EQ(voice.look(line_of(kSecond, "a table")), LineLook::kBare);
  EXPECT_EQ(voice.look(line_of(kFirst, "the same table")), LineLook::kHidden);
  EXPECT_EQ(voice.look(line_of(kServer, "server up at 127.0.0.1:20000")), LineLook::kHidden);
  voice.look(end_of(kFirst, 9));
  EXPECT_EQ(voice.look(line_of(kSecond, "a line of it")), LineLook::kBare);
  voice.look(end_of(kSecond, 9));
  EXPECT_EQ(voice.look(line_of(kFirst, "the same table")), LineLook::kBare);
  voice.look(end_of(kFirst, 0));
  EXPECT_EQ(voice.look(line_of({TaskRole::kWorker, 2}, "the same table")), LineLook::kHidden);
}

TEST(TrainVoice, WhoComesInThePlaceOfAnotherMayTakeOver) {
  TrainVoice voice;
  EXPECT_EQ(voice.look(line_of(kFirst, "a table")), LineLook::kBare);
  voice.look(end_of(kFirst, 15));
  EXPECT_EQ(voice.look(line_of(kSecond, "a table")), LineLook::kBare);
  TaskEvent again;
  again.kind = TaskEvent::Kind::kRunning;
  again.task = kFirst;
  voice.look(again);
  EXPECT_EQ(voice.look(line_of(kFirst, "a table")), LineLook::kBare);
  EXPECT_EQ(voice.look(line_of(kSecond, "the same table")), LineLook::kHidden);
}

TEST(TrainVoice, EverybodyMayComplain) {
  TrainVoice voice;
  EXPECT_EQ(voice.look(line_of(kServer, "09:25:12.345 W server: worker 2 died", true)), LineLook::kNamed);
  EXPECT_EQ(voice.look(line_of(kFirst, "pscloud: train-.* names no file", true)), LineLook::kNamed);
  EXPECT_EQ(voice.look(line_of(kServer, "09:25:12.345 I server: the job begins", true)), LineLook::kHidden);
}

}  // namespace
}  // namespace pscloud

#include "launch/run_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace pscloud {
namespace {

class RunFolderTest : public testing::Test {
 protected:
  RunFolderTest() {
    std::string name = testing::TempDir() + "runs-XXXXXX";
    home_ = ::mkdtemp(name.data());
  }
  ~RunFolderTest() override { std::filesystem::remove_all(home_); }

  Result<RunFolder> create(const std::string& name, bool exact = false) {
    return RunFolder::create(home_, name, exact,
                             [](const std::string& run) -> Result<std::map<std::string, std::string>> {
                               RunState state;
                               state.run = run;
                               return std::map<std::string, std::string>{{"state.json", run_state_json(state)}};
                             });
  }

  std::string home_;
};

TEST_F(RunFolderTest, ASecondRunOfANameGetsANumber) {
  const auto first = create("train");
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->name(), "train");
  EXPECT_EQ(create("train")->name(), "train-2");
  EXPECT_EQ(create("train")->name(), "train-3");
  EXPECT_EQ(create("train-2")->name(), "train-2-2");
  EXPECT_EQ(RunFolder::open(home_, "train-3")->state()->run, "train-3");
}

TEST_F(RunFolderTest, ALongNameIsCutForItsNumber) {
  const std::string longest = "a" + std::string(kRunNameMax - 1, 'b');
  EXPECT_EQ(create(longest)->name(), longest);
  for (int number = 2; number < 12; ++number) {
    const auto next = create(longest);
    ASSERT_TRUE(next) << next.error().message;
    const std::string suffix = "-" + std::to_string(number);
    EXPECT_EQ(next->name(), longest.substr(0, kRunNameMax - suffix.size()) + suffix);
  }
}

TEST_F(RunFolderTest, AChosenNameIsRefusedWhileItRunsAndNumberedAfter) {
  {
    const auto first = create("train", true);
    const auto second = create("train", true);
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().message.find("pscloud stop train"), std::string::npos) << second.error().message;
  }
  EXPECT_EQ(create("train", true)->name(), "train-2") << "its process is gone";
  for (const auto& entry : std::filesystem::directory_iterator(home_)) {
    EXPECT_NE(entry.path().filename().string().front(), '.') << "what was refused leaves nothing";
  }
}

TEST_F(RunFolderTest, ItsUserAloneMayReadIt) {
  const auto folder = create("train");
  struct stat info {};
  ASSERT_EQ(::stat(folder->path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ASSERT_EQ(::stat(folder->path("state.json").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(RunFolderTest, TheLockTellsWhetherItsProcessLives) {
  int ready[2];
  int done[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(done), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto folder = create("train");
    char byte = folder ? '+' : '-';
    if (::write(ready[1], &byte, 1) == 1 && ::read(done[0], &byte, 1) == 1) ::_exit(0);
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  auto folder = RunFolder::open(home_, "train");
  ASSERT_TRUE(folder) << folder.error().message;
  EXPECT_TRUE(folder->is_watched());
  EXPECT_EQ(folder->watcher(), child);
  EXPECT_FALSE(folder->lock());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(folder->is_watched());
  EXPECT_TRUE(folder->lock());
  EXPECT_EQ(folder->watcher(), ::getpid());
  EXPECT_FALSE(RunFolder::open(home_, "train")->lock()) << "another part of this process has it";
  for (const int fd : {ready[0], ready[1], done[0], done[1]}) ::close(fd);
}

TEST_F(RunFolderTest, AChildGoesOnWithTheLockOfItsParent) {
  auto folder = create("train");
  int done[2];
  ASSERT_EQ(::pipe(done), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(done[1]);
    char byte = 0;
    ::_exit(folder->write_watcher() && ::read(done[0], &byte, 1) == 0 ? 0 : 1);
  }
  { const RunFolder gone = *std::move(folder); }
  EXPECT_TRUE(RunFolder::open(home_, "train")->is_watched());
  ::close(done[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(RunFolder::open(home_, "train")->is_watched());
  EXPECT_EQ(RunFolder::open(home_, "train")->watcher(), child);
  ::close(done[0]);
}

TEST_F(RunFolderTest, WhatIsNotThereIsNamedWithTheNearest) {
  EXPECT_NE(RunFolder::open(home_, "x").error().message.find("pscloud run --help"), std::string::npos);
  const auto folder = create("clicks");
  EXPECT_NE(RunFolder::open(home_, "click").error().message.find("did you mean 'clicks'?"), std::string::npos);
  for (const char* bad : {"", ".", "..", "../runs", "clicks/../clicks"})
    EXPECT_FALSE(RunFolder::open(home_, bad)) << bad;
}

TEST_F(RunFolderTest, TheHistoryIsNewestFirstAndKnowsWhatIsOpen) {
  for (const char* name : {"a", "b", "c"}) {
    const auto folder = create(name);
    if (*name == 'b') folder->settle();
  }
  struct timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, {.tv_sec = 4000000000, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (home_ + "/a/state.json").c_str(), times, 0), 0);
  const auto runs = list_runs(home_);
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].name, "a");
  for (const RunEntry& run : runs) EXPECT_EQ(run.settled, run.name == "b");
  EXPECT_TRUE(list_runs(home_ + "/nothing").empty());
}

TEST_F(RunFolderTest, WhatNeverAppearedIsRemovedUnlessItsMakerLives) {
  std::filesystem::create_directories(home_ + "/.new-1/logs");
  std::ofstream(home_ + "/.new-1/lock") << "1\n";
  std::filesystem::create_directories(home_ + "/.new-2");
  const auto folder = create("a");
  std::filesystem::rename(folder->path(), home_ + "/.new-3");
  remove_unborn(home_);
  EXPECT_FALSE(std::filesystem::exists(home_ + "/.new-1"));
  EXPECT_FALSE(std::filesystem::exists(home_ + "/.new-2"));
  EXPECT_TRUE(std::filesystem::exists(home_ + "/.new-3"));
}

TEST(RunState, OtherMachinesCostFromTheirBeginningOn) {
  constexpr int64_t kHour = 3600 * 1000;
  RunState state;
  state.run = "r";
  state.began_unix_ms = kHour;
  state.cost_usd_per_hour = 2;
  state.change_cost(8, false, 2 * kHour);
  EXPECT_DOUBLE_EQ(state.cost_usd(2 * kHour), 2);
  EXPECT_DOUBLE_EQ(state.cost_usd(4 * kHour), 2 + 2 * 8);
  state.change_cost(1, true, 4 * kHour);
  const RunState again = parse_run_state(run_state_json(state)).value();
  EXPECT_DOUBLE_EQ(again.cost_usd(6 * kHour), 2 + 2 * 8 + 2 * 1);
  EXPECT_TRUE(again.cost_incomplete);
}

TEST(RunState, IsTheSameAfterItsWay) {
  RunState state;
  state.run = "clicks";
  state.job = "j1";
  state.target = "ssh";
  state.step = RunState::Step::kFailed;
  state.message = "worker-0 \"failed\"\n";
  state.root_cause = {TaskRole::kWorker, 0};
  state.began_unix_ms = 1;
  state.ended_unix_ms = 2;
  state.exit_code = 1;
  state.left = {"process 7 on a"};
  state.tasks = {
      {.id = {TaskRole::kWorker, 0}, .state = TaskState::kFailed, .host = "a", .address = {"::1", 9}, .code = 7}};
  const auto back = parse_run_state(run_state_json(state));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(run_state_json(*back), run_state_json(state));
  EXPECT_FALSE(parse_run_state("{}"));
  EXPECT_FALSE(parse_run_state("{\"run\":\"a\",\"state\":\"sleeping\"}"));
}

}  // namespace
}  // namespace pscloud

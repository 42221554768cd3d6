#include "launch/rendezvous/shared_folder.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

namespace pscloud {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

class SharedFolderTest : public testing::Test {
 protected:
  SharedFolderTest() {
    std::string pattern = testing::TempDir() + "pscloud-shared-XXXXXX";
    parent_ = ::mkdtemp(pattern.data());
  }
  ~SharedFolderTest() override { std::filesystem::remove_all(parent_); }

  SharedFolder make() { return *SharedFolder::make(parent_, "j1"); }

  std::string parent_;
};

TEST_F(SharedFolderTest, IsForItsUserAlone) {
  const SharedFolder folder = make();
  ASSERT_TRUE(folder.write("cluster.json", "{}"));
  struct stat status {};
  ASSERT_EQ(::stat(folder.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  ASSERT_EQ(::stat(folder.path_of("cluster.json").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(SharedFolderTest, AFileThatIsBeingWrittenIsNotShown) {
  const SharedFolder folder = make();
  std::ofstream(folder.path_of(".cluster.json.00ff")) << "{\"job\":";
  ASSERT_TRUE(folder.write("done.json", "{}"));
  EXPECT_THAT(*folder.names(), ElementsAre("done.json"));
}

TEST_F(SharedFolderTest, OnlyOneCanCreateAName) {
  const SharedFolder folder = make();
  ASSERT_TRUE(folder.create("leader.json", "first"));
  const auto second = folder.create("leader.json", "second");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kInvalid);
  EXPECT_EQ(*folder.read("leader.json"), "first");
  EXPECT_THAT(*folder.names(), ElementsAre("leader.json"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);  // nothing is left of the second
}

TEST_F(SharedFolderTest, WhatIsTooLongIsNotReadInPart) {
  const SharedFolder folder = make();
  ASSERT_TRUE(folder.write("a", "12345"));
  EXPECT_EQ(*folder.read("a", 5), "12345");
  EXPECT_EQ(folder.read("a", 4).error().code, Code::kInvalid);
  EXPECT_EQ(*folder.read_from("a", 3, 100), "45");
  EXPECT_EQ(folder.read("b").error().code, Code::kNotFound);
}

TEST_F(SharedFolderTest, TouchingChangesTheStamp) {
  const SharedFolder folder = make();
  ASSERT_TRUE(folder.write("leader.json", "{}"));
  const auto before = folder.stamp("leader.json");
  // The clock of a file system ticks every few milliseconds.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (*folder.stamp("leader.json") == *before && std::chrono::steady_clock::now() < deadline) {
    ASSERT_TRUE(folder.touch("leader.json"));
  }
  EXPECT_NE(*folder.stamp("leader.json"), *before);
}

// Two writers replace one file again and again, with contents of very different length: a reader sees one of them
// whole, and never another's end behind its begin.
TEST_F(SharedFolderTest, AReaderNeverSeesHalfAFileThoughTwoWrite) {
  const SharedFolder folder = make();
  const auto content = [](char writer, int round) {
    return fmt::format("{}{}", std::string(static_cast<size_t>(round * 7919 % 50000), writer), round);
  };
  ASSERT_TRUE(folder.write("cluster.json", content('a', 0)));
  std::atomic<int> writing = 2;
  const auto write = [&](char writer) {
    for (int round = 0; round < 100; ++round) EXPECT_TRUE(folder.write("cluster.json", content(writer, round)));
    --writing;
  };
  std::jthread a(write, 'a'), b(write, 'b');
  int reads = 0;
  while (writing > 0 || reads < 100) {
    const auto text = folder.read("cluster.json");
    ASSERT_TRUE(text);
    const size_t digits = text->find_first_of("0123456789");
    ASSERT_NE(digits, std::string::npos);
    const char writer = digits == 0 ? 'a' : text->front();
    ASSERT_EQ(*text, content(writer, std::stoi(text->substr(digits)))) << "read " << reads;
    ++reads;
  }
  EXPECT_THAT(*folder.names(), ElementsAre("cluster.json"));
}

TEST(FolderFile, NamesSayWhoseTheyAre) {
  const TaskId task{TaskRole::kWorker, 12};
  const auto arrived = folder_file::of_arrival(folder_file::arrival(task, 3));
  ASSERT_TRUE(arrived);
  EXPECT_EQ(arrived->task, task);
  EXPECT_EQ(arrived->attempt, 3);
  EXPECT_TRUE(folder_file::of_messages(folder_file::messages(task, 0)));
  for (const char* name : {"ep.worker-1.json", "ep.worker.0.json", "ep.worker-1.x.json", "ep..0.json", "ep.json",
                           "cluster.json", "ep.worker-1.0.json.bak", "out.worker-1.0.jsonl"}) {
    EXPECT_FALSE(folder_file::of_arrival(name)) << name;
  }
}

TEST(Liveness, CountsByTheWatchersClockAlone) {
  Liveness::Now now{};
  Liveness life(milliseconds(1000), now);
  // A file whose clock is an hour off, or goes back, is alive as long as it changes.
  EXPECT_TRUE(life.alive(SharedFolder::Stamp{3600, 0}, now));
  EXPECT_TRUE(life.alive(SharedFolder::Stamp{3600, 0}, now + milliseconds(999)));
  EXPECT_TRUE(life.alive(SharedFolder::Stamp{10, 0}, now + milliseconds(999)));
  EXPECT_TRUE(life.alive(std::nullopt, now + milliseconds(1900)));  // a bad moment of the disk
  EXPECT_FALSE(life.alive(SharedFolder::Stamp{10, 0}, now + milliseconds(1999)));
}

TEST(Backoff, GrowsFrom50MillisecondsTo2Seconds) {
  Backoff backoff;
  EXPECT_EQ(backoff.next(), milliseconds(50));
  milliseconds last{0};
  for (int i = 0; i < 20; ++i) {
    const milliseconds next = backoff.next();
    EXPECT_GE(next, last);
    last = next;
  }
  EXPECT_EQ(last, milliseconds(2000));
  backoff.reset();
  EXPECT_EQ(backoff.next(), milliseconds(50));
}

}  // namespace
}  // namespace pscloud

#include "launch/rendezvous/folder_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "launch/rendezvous/folder_watch.h"
#include "launch/rendezvous/rendezvous_file.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using EventKind = TaskEvent::Kind;

const TaskId kTheServer{TaskRole::kServer, 0};
const TaskId kTheWorker{TaskRole::kWorker, 0};

// Both sides in one thread, on a clock of the test's own.
class FolderLinkTest : public testing::Test {
 protected:
  FolderLinkTest() {
    std::string pattern = testing::TempDir() + "pscloud-link-XXXXXX";
    parent_ = ::mkdtemp(pattern.data());
    folder_.emplace(*SharedFolder::make(parent_, "j1"));
    watch_ = *FolderWatch::begin(*folder_, "j1", {kTheServer, kTheWorker}, times_, now_);
  }
  ~FolderLinkTest() override { std::filesystem::remove_all(parent_); }

  std::unique_ptr<FolderLink> link(TaskId task, const std::string& job = "j1", int attempt = 0) {
    TaskSpec spec;
    spec.job = job;
    spec.id = task;
    spec.attempt = attempt;
    return std::make_unique<FolderLink>(*folder_, spec, times_, FolderLink::Lines::kToFolder, now_);
  }
  static TaskEvent arrived(TaskId task, uint16_t port) {
    return {.kind = EventKind::kArrived, .task = task, .host = "here", .address = {"10.0.0.1", port}};
  }
  // Lets time pass, as the loops around both sides would, until the link has something to say.
  std::optional<LauncherWord> word(FolderLink& link, milliseconds within = seconds(10)) {
    for (const auto end = now_ + within; now_ < end; now_ += milliseconds(100)) {
      if (auto word = link.next(now_)) return word;
    }
    return {};
  }
  std::vector<TaskEvent> look() {
    now_ = std::max(now_, watch_->look_again());
    return watch_->look(now_);
  }

  std::string parent_;
  std::optional<SharedFolder> folder_;
  const FolderTimes times_{seconds(1), seconds(20)};
  AgentLink::Time now_{std::chrono::hours(1)};
  std::unique_ptr<FolderWatch> watch_;
};

TEST_F(FolderLinkTest, AServerHearsOfTheLastWorkersEndAtOnceHoweverLongTheyRan) {
  const auto server = link(kTheServer);
  const auto worker = link(kTheWorker);
  server->say(arrived(kTheServer, 5));
  worker->say(arrived(kTheWorker, 77));
  EXPECT_EQ(look().size(), 2U);
  ASSERT_TRUE(watch_->release({"j1", {{kTheServer, {"10.0.0.1", 5}}, {kTheWorker, {"10.0.0.1", 77}}}}));
  ASSERT_TRUE(word(*server));
  constexpr milliseconds kTick{5};
  for (const auto end = now_ + seconds(20); now_ < end; now_ += kTick) {
    if (now_ >= watch_->look_again()) watch_->look(now_);
    EXPECT_FALSE(server->next(now_));
    worker->next(now_);
  }
  worker->say({.kind = EventKind::kExited, .task = kTheWorker});
  const auto ended = now_;
  std::optional<LauncherWord> order;
  for (; !order && now_ < ended + seconds(10); now_ += kTick) {
    const bool heard = now_ >= watch_->look_again() && !watch_->look(now_).empty();
    if (heard) {
      ASSERT_TRUE(watch_->stop(kTheServer, false));
    }
    order = server->next(now_);
  }
  ASSERT_TRUE(order);
  EXPECT_EQ(order->kind, LauncherWord::Kind::kStop);
  // A promise of one second leaves the rest to disks and busy machines.
  EXPECT_LE(now_ - ended, milliseconds(350));
}

TEST_F(FolderLinkTest, ATaskArrivesIsToldWhoIsWhereAndTellsHowItEnds) {
  const auto worker = link(kTheWorker);
  EXPECT_FALSE(worker->next(now_));
  worker->say(arrived(kTheWorker, 77));
  auto events = look();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, EventKind::kArrived);
  EXPECT_EQ(events[0].address.text(), "10.0.0.1:77");
  EXPECT_EQ(events[0].host, "here");

  const ClusterView view{"j1", {{kTheServer, {"10.0.0.2", 5}}, {kTheWorker, {"10.0.0.1", 77}}}};
  ASSERT_TRUE(watch_->release(view));
  const auto got = word(*worker);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->kind, LauncherWord::Kind::kView);
  EXPECT_EQ(got->view.find(kTheServer)->text(), "10.0.0.2:5");

  worker->say({.kind = EventKind::kRunning, .task = kTheWorker, .pid = 4});
  worker->say({.kind = EventKind::kLine, .task = kTheWorker, .text = "two\nlines", .is_stderr = true});
  worker->say({.kind = EventKind::kExited, .task = kTheWorker, .code = 3});
  EXPECT_TRUE(worker->flush(now_));
  events = look();
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[1].text, "two\nlines");
  EXPECT_TRUE(events[1].is_stderr);
  EXPECT_EQ(events[2].code, 3);
  EXPECT_TRUE(look().empty());
}

TEST_F(FolderLinkTest, AViewThatDoesNotHaveTheTaskIsNotForIt) {
  const auto worker = link(kTheWorker);
  worker->say(arrived(kTheWorker, 77));
  ASSERT_TRUE(watch_->release({"j1", {{kTheServer, {"10.0.0.2", 5}}}}));
  EXPECT_FALSE(word(*worker));
  ASSERT_TRUE(watch_->release({"j1", {{kTheWorker, {"10.0.0.1", 76}}}}));  // an attempt before this one
  EXPECT_FALSE(word(*worker, seconds(1)));
  ASSERT_TRUE(watch_->release({"j1", {{kTheWorker, {"10.0.0.1", 77}}}}));
  EXPECT_TRUE(word(*worker));
}

TEST_F(FolderLinkTest, FilesOfAnotherJobDoNotCount) {
  const auto stranger = link(kTheWorker, "j0");
  stranger->say(arrived(kTheWorker, 1));
  EXPECT_TRUE(look().empty());
  ASSERT_TRUE(folder_->write(folder_file::kAbort, folder_order_json({.job = "j0", .reason = "old"})));
  ASSERT_TRUE(folder_->write(folder_file::kCluster, R"({"job":"j0","tasks":{"server-0":"a:1"}})"));
  const auto server = link(kTheServer);
  server->say(arrived(kTheServer, 1));
  EXPECT_FALSE(word(*server, seconds(1)));
  EXPECT_EQ(look().size(), 1U);
}

TEST_F(FolderLinkTest, ALeaderLeadsOneJobOnly) {
  const auto again = FolderWatch::begin(*folder_, "j1", {kTheWorker}, times_, now_);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kInvalid);
}

TEST_F(FolderLinkTest, StopIsSaidOnceAndAtOnceOnceMore) {
  const auto worker = link(kTheWorker);
  worker->say(arrived(kTheWorker, 77));
  look();
  ASSERT_TRUE(watch_->stop(kTheWorker, false));
  auto got = word(*worker);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->kind, LauncherWord::Kind::kStop);
  EXPECT_FALSE(got->at_once);
  EXPECT_FALSE(word(*worker, seconds(1)));
  ASSERT_TRUE(watch_->stop(kTheWorker, true));
  got = word(*worker);
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->at_once);
  EXPECT_FALSE(word(*worker, seconds(1)));
}

TEST_F(FolderLinkTest, WhoComesAfterTheEndIsToldSo) {
  ASSERT_TRUE(watch_->abort("worker-1 failed: exit code 3", 1));
  const auto late = link(kTheWorker);
  const auto got = word(*late);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->kind, LauncherWord::Kind::kGone);
  EXPECT_EQ(got->why, "worker-1 failed: exit code 3");
  EXPECT_EQ(late->ending(), FolderLink::Ending::kAbort);
  EXPECT_EQ(late->abort_code(), 1);
}

TEST_F(FolderLinkTest, ALauncherThatIsGoneEndsTheTaskInTime) {
  const auto worker = link(kTheWorker);
  worker->say(arrived(kTheWorker, 77));
  EXPECT_FALSE(word(*worker, times_.lost_after - seconds(1)));
  const auto got = word(*worker, seconds(4));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->kind, LauncherWord::Kind::kGone);
  EXPECT_EQ(worker->ending(), FolderLink::Ending::kLeaderLost);
}

TEST_F(FolderLinkTest, WhereNobodyLeadsATaskEndsWhenItsTimeIsOver) {
  folder_.emplace(*SharedFolder::make(parent_, "j2"));
  TaskSpec spec;
  spec.job = "j2";
  spec.id = kTheWorker;
  spec.arrive_timeout_ms = 7000;
  FolderLink lonely(*folder_, spec, times_, FolderLink::Lines::kHere, now_);
  lonely.say(arrived(kTheWorker, 77));
  const auto began = now_;
  std::optional<LauncherWord> got;
  while (!got && now_ < began + seconds(60)) {
    got = lonely.next(now_);
    if (!got) now_ = std::max(now_ + milliseconds(1), lonely.ask_again(now_));
  }
  ASSERT_TRUE(got);
  EXPECT_EQ(got->kind, LauncherWord::Kind::kGone);
  EXPECT_EQ(lonely.ending(), FolderLink::Ending::kNoLeader);
  EXPECT_EQ(now_ - began, milliseconds(spec.arrive_timeout_ms));
}

TEST_F(FolderLinkTest, AnotherVersionIsRefusedByName) {
  const Arrival stranger{"j1", kTheWorker, 0, {"10.0.0.1", 77}, "node7", 4, "0.0.9"};
  ASSERT_TRUE(folder_->write(folder_file::arrival(kTheWorker, 0), arrival_json(stranger)));
  const auto events = look();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, EventKind::kLost);
  EXPECT_EQ(events[0].host, "node7");
  EXPECT_THAT(events[0].text, HasSubstr("it is pscloud 0.0.9, and its leader is pscloud "));
  EXPECT_TRUE(folder_->read(folder_file::stop(kTheWorker)));
  // One that does not say its version is another too.
  ASSERT_TRUE(folder_->write(folder_file::arrival(kTheServer, 0),
                             R"({"job":"j1","task":"server-0","attempt":0,"address":"10.0.0.1:5","host":"old"})"));
  const auto more = look();
  ASSERT_EQ(more.size(), 1U);
  EXPECT_EQ(more[0].kind, EventKind::kLost);
}

TEST_F(FolderLinkTest, ATaskSaysItsVersionAndItsProcess) {
  link(kTheWorker)->say(arrived(kTheWorker, 77));
  const auto arrival = parse_arrival(*folder_->read(folder_file::arrival(kTheWorker, 0)));
  ASSERT_TRUE(arrival);
  EXPECT_EQ(arrival->version, own_version());
  EXPECT_EQ(arrival->pid, ::getpid());
}

TEST_F(FolderLinkTest, ATaskThatIsGoneIsLostInTimeAndOneThatBeatsIsNot) {
  const auto worker = link(kTheWorker), server = link(kTheServer);
  worker->say(arrived(kTheWorker, 77));
  server->say(arrived(kTheServer, 78));
  EXPECT_EQ(look().size(), 2U);
  std::vector<TaskEvent> lost;
  for (const auto end = now_ + 2 * times_.lost_after; now_ < end;) {
    server->next(now_);
    for (const TaskEvent& event : look()) lost.push_back(event);
  }
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].kind, EventKind::kLost);
  EXPECT_EQ(lost[0].task, kTheWorker);
  EXPECT_THAT(lost[0].text, HasSubstr("no sign of life for 20 s"));
}

TEST_F(FolderLinkTest, ASecondStartOfATaskIsRefusedAndAnAttemptMoreIsALoss) {
  const auto first = link(kTheWorker), twin = link(kTheWorker);
  first->say(arrived(kTheWorker, 1));
  twin->say(arrived(kTheWorker, 2));
  const auto got = twin->next(now_);
  ASSERT_TRUE(got);
  EXPECT_THAT(got->why, HasSubstr("started twice"));
  EXPECT_EQ(look().size(), 1U);
  const auto second = link(kTheWorker, "j1", 1);
  second->say(arrived(kTheWorker, 3));
  const auto events = look();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, EventKind::kLost);
}

TEST_F(FolderLinkTest, AMessageIsReadWhenItIsWhole) {
  const auto worker = link(kTheWorker);
  worker->say(arrived(kTheWorker, 77));
  look();
  const std::string line = R"({"task":"worker-0","line":"hello"})";
  std::ofstream file(folder_->path_of(folder_file::messages(kTheWorker, 0)), std::ios::app);
  file << line.substr(0, 20) << std::flush;
  EXPECT_TRUE(look().empty());
  file << line.substr(20) << "\n" << line << "\n" << line.substr(0, 3) << std::flush;
  EXPECT_EQ(look().size(), 2U);
  // A reader may see zeros where NFS has not brought the bytes yet.
  file << line.substr(3) << "\n" << std::flush;
  EXPECT_EQ(look().size(), 1U);
}

TEST_F(FolderLinkTest, WhomTheQueueHasLostIsLostUnlessItHasTold) {
  const auto worker = link(kTheWorker), server = link(kTheServer);
  worker->say(arrived(kTheWorker, 77));
  server->say(arrived(kTheServer, 78));
  look();
  watch_->presume_lost(kTheWorker, "its node failed", now_ + seconds(5));
  watch_->presume_lost(kTheServer, "its node failed", now_ + seconds(5));
  server->say({.kind = EventKind::kExited, .task = kTheServer, .code = 0});
  std::vector<TaskEvent> events;
  for (const auto end = now_ + seconds(6); now_ < end;) {
    for (const TaskEvent& event : look()) events.push_back(event);
  }
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].kind, EventKind::kExited);
  EXPECT_EQ(events[1].kind, EventKind::kLost);
  EXPECT_EQ(events[1].text, "its node failed");
}

}  // namespace
}  // namespace pscloud

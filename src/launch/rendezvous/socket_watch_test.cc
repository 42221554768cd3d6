#include "launch/rendezvous/socket_watch.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "launch/agent/stream_link.h"
#include "net/certificate.h"
#include "net/socket.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using EventKind = TaskEvent::Kind;

const TaskId kWorker7{TaskRole::kWorker, 7};

// A launcher that listens, and agents that connect to it, in one thread (and those of their pipes).
class SocketWatchTest : public testing::Test {
 protected:
  SocketWatchTest() {
    std::string pattern = testing::TempDir() + "pscloud-socket-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    make_certificates("");
    Fd listener = *listen_on(resolve({"127.0.0.1", 0}, true)->front());
    address_ = *parse_address(local_endpoint(listener.get()).text());
    watch_ = *SocketWatch::begin(std::move(listener), folder_ + "/launcher", {kWorker7});
  }
  ~SocketWatchTest() override { std::filesystem::remove_all(folder_); }

  void make_certificates(const std::string& suffix) {
    const std::string ca = folder_ + "/ca" + suffix;
    ASSERT_TRUE(make_ca(ca, "j1", std::chrono::hours(1)));
    ASSERT_TRUE(issue_certificate(ca, folder_ + "/launcher" + suffix, Role::kScheduler, "l", std::chrono::hours(1)));
    ASSERT_TRUE(issue_certificate(ca, folder_ + "/agent" + suffix, Role::kWorker, "a", std::chrono::hours(1)));
  }

  struct Agent {
    std::unique_ptr<TlsContext> tls;
    std::unique_ptr<SecurePipe> pipe;
    std::unique_ptr<StreamLink> link;  // destroyed first
  };
  Agent connect(const std::string& certificate) {
    Agent agent;
    agent.tls = *TlsContext::load(folder_ + "/" + certificate, 1 << 30);
    Fd socket = *connect_until(address_, steady_clock::now() + seconds(20));
    auto stream = agent.tls->connect(socket.get(), Role::kScheduler);
    agent.pipe = *SecurePipe::over(std::move(socket), std::move(stream));
    agent.link = std::make_unique<StreamLink>(agent.pipe->take_near_end(), Fd(), 60000, StreamLink::Answer(),
                                              steady_clock::now());
    return agent;
  }

  // Both sides do what there is to do until `done`.
  template <class Done>
  bool go(const Agent& agent, const Done& done) {
    const auto deadline = steady_clock::now() + seconds(30);
    while (steady_clock::now() < deadline) {
      for (TaskEvent& event : watch_->look(steady_clock::now())) events_.push_back(std::move(event));
      if (agent.link) {
        while (auto word = agent.link->next(steady_clock::now())) words_.push_back(*std::move(word));
      }
      if (done()) return true;
      std::vector<pollfd> polled;
      watch_->add_to(polled);
      if (agent.link) agent.link->add_to(polled);
      ::poll(polled.data(), polled.size(), 20);
    }
    return false;
  }

  std::string folder_;
  Address address_;
  std::unique_ptr<SocketWatch> watch_;
  std::vector<TaskEvent> events_;
  std::vector<LauncherWord> words_;
};

TEST_F(SocketWatchTest, AnAgentConnectsHearsWhoIsWhereAndTellsItsEnd) {
  Agent agent = connect("agent");
  agent.link->say({.kind = EventKind::kArrived, .task = kWorker7, .host = "there", .address = {"10.0.0.1", 77}});
  ASSERT_TRUE(go(agent, [&] { return events_.size() == 1; }));
  EXPECT_EQ(events_[0].address.text(), "10.0.0.1:77");

  ASSERT_TRUE(watch_->release({"j1", {{kWorker7, {"10.0.0.1", 77}}}}));
  ASSERT_TRUE(watch_->stop(kWorker7, true));
  ASSERT_TRUE(go(agent, [&] { return words_.size() == 2; }));
  EXPECT_EQ(words_[0].kind, LauncherWord::Kind::kView);
  EXPECT_TRUE(words_[1].at_once);

  // Much is said at the last moment: nothing of it is lost though the agent ends at once.
  constexpr size_t kLines = 5000;
  for (size_t i = 0; i < kLines; ++i) {
    agent.link->say({.kind = EventKind::kLine, .task = kWorker7, .text = std::string(100, 'x')});
  }
  agent.link->say({.kind = EventKind::kExited, .task = kWorker7, .code = 3});
  ASSERT_TRUE(go(agent, [&] { return agent.link->flush(steady_clock::now()); }));
  agent.link.reset();
  ASSERT_TRUE(go(agent, [&] { return events_.size() == kLines + 2; }));
  EXPECT_EQ(events_.back().code, 3);
}

// An agent hears of its program's end by SIGCHLD, which must not get lost in a thread.
TEST_F(SocketWatchTest, SignalsReachWhoWaitsForThem) {
  const Agent agent = connect("agent");
  sigset_t child, before;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &child, &before), 0);
  ASSERT_EQ(::kill(::getpid(), SIGCHLD), 0);
  const timespec patience{10, 0};
  EXPECT_EQ(::sigtimedwait(&child, nullptr, &patience), SIGCHLD);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_F(SocketWatchTest, WhoseConnectionEndsBeforeItsTaskIsLost) {
  Agent agent = connect("agent");
  agent.link->say({.kind = EventKind::kArrived, .task = kWorker7, .host = "there", .address = {"10.0.0.1", 77}});
  ASSERT_TRUE(go(agent, [&] { return events_.size() == 1; }));
  agent.link.reset();
  ASSERT_TRUE(go(agent, [&] { return events_.size() == 2; }));
  EXPECT_EQ(events_[1].kind, EventKind::kLost);
}

TEST_F(SocketWatchTest, WhoIsOfAnotherCaIsNotHeard) {
  make_certificates("-other");
  Agent stranger = connect("agent-other");
  stranger.link->say({.kind = EventKind::kArrived, .task = kWorker7, .host = "there", .address = {"10.0.0.1", 77}});
  ASSERT_TRUE(go(stranger, [&] { return !words_.empty(); }));
  EXPECT_EQ(words_[0].kind, LauncherWord::Kind::kGone);
  EXPECT_TRUE(events_.empty());
}

TEST_F(SocketWatchTest, ATaskThatIsStoppedBeforeItComesIsToldWhenItDoes) {
  ASSERT_TRUE(watch_->stop(kWorker7, true));
  Agent agent = connect("agent");
  agent.link->say({.kind = EventKind::kArrived, .task = kWorker7, .host = "there", .address = {"10.0.0.1", 77}});
  ASSERT_TRUE(go(agent, [&] { return !words_.empty(); }));
  EXPECT_EQ(words_[0].kind, LauncherWord::Kind::kStop);
}

TEST_F(SocketWatchTest, ASecondStartOfATaskIsEndedAtOnce) {
  Agent first = connect("agent");
  first.link->say({.kind = EventKind::kArrived, .task = kWorker7, .host = "there", .address = {"10.0.0.1", 77}});
  ASSERT_TRUE(go(first, [&] { return events_.size() == 1; }));
  Agent second = connect("agent");
  second.link->say({.kind = EventKind::kArrived, .task = kWorker7, .host = "there", .address = {"10.0.0.1", 78}});
  ASSERT_TRUE(go(second, [&] { return !words_.empty(); }));
  EXPECT_EQ(words_[0].kind, LauncherWord::Kind::kStop);
  EXPECT_EQ(events_.size(), 1U);
}

}  // namespace
}  // namespace pscloud

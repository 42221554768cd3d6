#include "pscloud/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "base/log.h"
#include "engine/testing_cluster.h"

namespace pscloud {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

class NodeTest : public testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::kSilent); }
  void TearDown() override { set_log_level(LogLevel::kInfo); }
};

TEST_F(NodeTest, EverybodyEndsByItselfWhenTheWorkersHaveLeft) {
  TestingCluster cluster({.servers = 2, .owners = 2});
  EXPECT_TRUE(cluster.worker()->leave());
  for (size_t i = 0; i < cluster.size(); ++i) {
    const Result<> ended = cluster.at(i).wait();
    EXPECT_TRUE(ended) << ended.error().message;
  }
}

TEST_F(NodeTest, AWorkerThatIsDroppedEndsTheJobWithAnError) {
  NodeOptions options = TestingCluster().node(Role::kScheduler);
  options.local = make_local_network();
  options.restart_wait_ms = 0;
  auto scheduler = *Node::start(options);
  options.role = Role::kServer;
  auto server = *Node::start(options);
  options.role = Role::kWorker;
  TestingCluster::worker(options).reset();
  for (Node* node : {scheduler.get(), server.get()}) {
    const Result<> ended = node->wait();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, Code::kFailed);
    EXPECT_THAT(ended.error().message, HasSubstr("every worker died"));
  }
}

// Why it gives up is the news, not that nothing comes back to it then.
TEST_F(NodeTest, AWorkerThatGivesUpDoesNotComplainOfRequestsThatNobodyWaitsFor) {
  const TestingCluster cluster({.workers = 2});
  const TableSpec spec{.name = "w", .consistency = Consistency::bsp()};
  std::promise<void> gone;
  std::jthread staying([&] {
    const auto other = cluster.worker(1);
    EXPECT_TRUE(other->create_table(spec));
    EXPECT_TRUE(other->barrier());
    gone.get_future().wait();
    EXPECT_TRUE(other->leave());
  });
  auto worker = cluster.worker(0);
  const Table table = worker->create_table(spec).value();
  EXPECT_TRUE(worker->barrier());
  (void)worker->clock();
  std::vector<float> out(1);
  (void)worker->pull(table, std::vector<Key>{1}, out);  // which waits for the other's clock
  set_log_level(LogLevel::kWarning);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(worker->give_up("no such file"));
  worker.reset();
  const std::string said = testing::internal::GetCapturedStderr();
  set_log_level(LogLevel::kSilent);
  gone.set_value();
  EXPECT_THAT(said, testing::Not(HasSubstr("nobody waits")));
}

TEST_F(NodeTest, StopMayBeCalledTwiceFromTwoThreads) {
  TestingCluster cluster;
  for (size_t i = 0; i < cluster.size(); ++i) {
    std::jthread first([&] { cluster.at(i).stop(); });
    std::jthread second([&] { cluster.at(i).stop(); });
  }
  for (size_t i = 0; i < cluster.size(); ++i) {
    cluster.at(i).stop();
    EXPECT_FALSE(cluster.at(i).wait());
  }
}

TEST_F(NodeTest, AStoppedServerTellsTheWorkers) {
  TestingCluster cluster;
  const auto worker = cluster.worker();
  cluster.at(1).stop();
  EXPECT_THAT(cluster.at(0).wait().error().message, HasSubstr("server 0 died (it was stopped)"));
  TableSpec spec;
  spec.name = "w";
  const auto table = worker->create_table(spec);
  ASSERT_FALSE(table);
  EXPECT_THAT(table.error().message, HasSubstr("server 0 died"));
}

TEST_F(NodeTest, OptionsThatCannotBeAreRefusedWithWhatToChange) {
  NodeOptions options = TestingCluster().node(Role::kScheduler);
  options.workers = 0;
  EXPECT_EQ(Node::start(options).error().code, Code::kInvalid);
  EXPECT_THAT(Node::start(options).error().message, HasSubstr("workers is 0"));
  options = TestingCluster().node(Role::kServer);
  options.local = nullptr;
  EXPECT_EQ(Node::start(options).error().code, Code::kInvalid);
  options = TestingCluster().node(Role::kWorker);
  EXPECT_THAT(Node::start(options).error().message, HasSubstr("Worker::join"));
  EXPECT_EQ(Worker::join(NodeOptions{}).error().code, Code::kInvalid);
}

TEST_F(NodeTest, CertificatesThatAreNotThereAreAnErrorAtOnce) {
  NodeOptions options;
  options.scheduler = "127.0.0.1:1";
  options.tls_dir = "/nowhere";
  const auto start = steady_clock::now();
  for (const Role role : {Role::kScheduler, Role::kServer}) {
    options.role = role;
    const auto node = Node::start(options);
    ASSERT_FALSE(node);
    EXPECT_THAT(node.error().message, HasSubstr("/nowhere"));
  }
  EXPECT_FALSE(Worker::join(options));
  EXPECT_LT(steady_clock::now() - start, seconds(2));
}

TEST_F(NodeTest, APortThatIsTakenIsAnErrorAtOnce) {
  NodeOptions options;
  options.role = Role::kScheduler;
  options.scheduler = "127.0.0.1:0";
  options.insecure = true;
  const auto first = Node::start(options);
  ASSERT_TRUE(first) << first.error().message;
  const auto start = steady_clock::now();
  options.scheduler = (*first)->address();
  EXPECT_FALSE(Node::start(options));
  options.role = Role::kServer;
  options.listen = (*first)->address();
  EXPECT_FALSE(Node::start(options));
  EXPECT_LT(steady_clock::now() - start, seconds(2));
}

TEST_F(NodeTest, AServerOfSeveralOwnersMayBeGivenAPort) {
  NodeOptions options;
  options.scheduler = "127.0.0.1:0";
  options.insecure = true;
  options.http = "off";
  options.role = Role::kScheduler;
  const auto scheduler = *Node::start(options);
  options.listen = (*Node::start(options))->address();  // free again
  options.scheduler = scheduler->address();
  options.role = Role::kServer;
  options.owners = 3;
  const auto server = Node::start(options);
  ASSERT_TRUE(server) << server.error().message;
  EXPECT_EQ((*server)->address(), options.listen);
}

TEST_F(NodeTest, AWorkerWithoutASchedulerSaysWhomItMissed) {
  NodeOptions options = TestingCluster().node(Role::kWorker);
  options.local = make_local_network();
  options.join_timeout_ms = 100;
  const auto worker = Worker::join(options);
  ASSERT_FALSE(worker);
  EXPECT_EQ(worker.error().code, Code::kTimeout);
  EXPECT_THAT(worker.error().message, HasSubstr("inproc:scheduler"));
}

}  // namespace
}  // namespace pscloud

// How much a worker lets its program have under way.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "base/log.h"
#include "engine/testing_cluster.h"
#include "pscloud/worker.h"

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class WorkerQueueTest : public testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::kSilent); }
  void TearDown() override { set_log_level(LogLevel::kInfo); }

  static Table create(Worker& worker, const TableSpec& spec) {
    auto table = worker.create_table(spec);
    EXPECT_TRUE(table) << table.error().message;
    return table ? *table : Table{};
  }
  static void ok(const Ticket& ticket) {
    const Result<> result = ticket.wait();
    EXPECT_TRUE(result) << result.error().message;
  }
  static void expect_refused(const Ticket& ticket, Code code, const std::string& text) {
    const Result<> result = ticket.wait();
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, code) << result.error().message;
    EXPECT_THAT(result.error().message, HasSubstr(text));
  }
};

TEST_F(WorkerQueueTest, FullQueuesMakePushBlockAndThenGoOn) {
  TestingCluster cluster;
  NodeOptions options = cluster.node(Role::kWorker);
  options.queue_bytes_max = 1000;
  const auto worker = TestingCluster::worker(options);
  const Table table = create(*worker, {.name = "d", .kind = TableKind::kDense, .rows = 100'000});
  const std::vector<float> ones(100'000, 1.0f);
  // Each is larger than the queue: it is let in alone, when those before are done.
  std::vector<Ticket> tickets;
  for (int i = 0; i < 20; ++i) tickets.push_back(worker->push_rows(table, 0, ones));
  for (const Ticket& ticket : tickets) ok(ticket);
  std::vector<float> out(2);
  ok(worker->pull(table, std::vector<Key>{0, 99'999}, out));
  EXPECT_THAT(out, ElementsAre(20, 20));
}

// However small they are: each costs memory beside its keys and values.
TEST_F(WorkerQueueTest, ManySmallRequestsFillAQueue) {
  TestingCluster cluster({.workers = 2});
  std::promise<void> full;
  std::jthread other([&] {
    const auto slow = cluster.worker(1);
    create(*slow, {.name = "w", .consistency = Consistency::bsp()});
    full.get_future().wait();
    ok(slow->clock());
    EXPECT_TRUE(slow->leave());
  });
  NodeOptions options = cluster.node(Role::kWorker);
  options.rank = 0;
  options.queue_bytes_max = 10 << 10;
  const auto worker = TestingCluster::worker(options);
  const Table table = create(*worker, {.name = "w", .consistency = Consistency::bsp()});
  const Ticket clock = worker->clock();
  std::vector<float> out(9);
  std::vector<Ticket> tickets;
  for (size_t i = 0; i < out.size(); ++i) {
    if (i == out.size() - 1) full.set_value();  // from here on the other one may let us go on
    tickets.push_back(worker->pull(table, std::vector<Key>{i}, std::span(out).subspan(i, 1)));
  }
  EXPECT_TRUE(clock.done() || tickets[0].done()) << "the last one has waited for those before";
  for (const Ticket& ticket : tickets) ok(ticket);
  EXPECT_TRUE(worker->leave());
}

TEST_F(WorkerQueueTest, AQueueThatStaysFullNamesWhomItWaitsFor) {
  TestingCluster cluster({.workers = 2});
  std::jthread other([&] {
    const auto slow = cluster.worker(1);
    create(*slow, {.name = "w", .consistency = Consistency::bsp()});
    EXPECT_TRUE(slow->barrier());
    EXPECT_TRUE(slow->barrier());
    EXPECT_TRUE(slow->leave());
  });
  NodeOptions options = cluster.node(Role::kWorker);
  options.rank = 0;
  options.queue_bytes_max = 10;
  options.request_timeout_ms = 2000;
  const auto worker = TestingCluster::worker(options);
  const Table table = create(*worker, {.name = "w", .consistency = Consistency::bsp()});
  EXPECT_TRUE(worker->barrier());
  worker->clock();
  std::vector<float> out(1);
  const Ticket waits = worker->pull(table, std::vector<Key>{1}, out);
  expect_refused(worker->push(table, std::vector<Key>{1}, std::vector<float>{1}), Code::kTimeout, "worker 1");
  expect_refused(waits, Code::kTimeout, "worker 1");
  EXPECT_TRUE(worker->barrier());
  EXPECT_TRUE(worker->leave());
}

}  // namespace
}  // namespace pscloud

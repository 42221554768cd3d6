#include "pscloud/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <future>
#include <numeric>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "engine/testing_cluster.h"

namespace pscloud {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

class WorkerTest : public testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::kSilent); }
  void TearDown() override { set_log_level(LogLevel::kInfo); }

  static TableSpec spec(const std::string& name, Consistency consistency = Consistency::async()) {
    TableSpec spec;
    spec.name = name;
    spec.consistency = consistency;
    return spec;
  }
  static TableSpec dense(const std::string& name, uint64_t rows, uint32_t width = 1) {
    TableSpec dense = spec(name);
    dense.kind = TableKind::kDense;
    dense.rows = rows;
    dense.width = width;
    return dense;
  }
  static Table create(Worker& worker, const TableSpec& spec) {
    auto table = worker.create_table(spec);
    EXPECT_TRUE(table) << table.error().message;
    return table ? *table : Table{};
  }
  static void ok(const Ticket& ticket) {
    const Result<> result = ticket.wait();
    EXPECT_TRUE(result) << result.error().message;
  }
  static std::vector<float> pull(Worker& worker, const Table& table, std::vector<Key> keys) {
    std::vector<float> out(keys.size() * table.spec.width, -1);
    ok(worker.pull(table, keys, out));
    return out;
  }
  static void push(Worker& worker, const Table& table, std::vector<Key> keys, std::vector<float> values) {
    ok(worker.push(table, keys, values));
  }
  static void expect_refused(const Ticket& ticket, Code code, const std::string& text) {
    const Result<> result = ticket.wait();
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, code) << result.error().message;
    EXPECT_THAT(result.error().message, HasSubstr(text));
  }
};

TEST_F(WorkerTest, AnAnswerThatAnotherThreadTookInIsHeardOf) {
  // A thread that waits does the loop's work, and so does every call of another thread. A wake-up that gets lost
  // between the two costs the time to the next heartbeat, half a second.
  SystemClock clock;
  for (const bool sockets : {false, true}) {
    const TestingCluster cluster({.sockets = sockets});
    const auto worker = cluster.worker();
    const Table table = create(*worker, spec("w"));
    std::atomic<bool> done{false};
    const std::jthread other([&] {
      while (!done) {
        EXPECT_TRUE(worker->lend(1));
        for (int i = 0; i < 20 && !done; ++i) std::this_thread::yield();
      }
    });
    const Time start = clock.now();
    for (int i = 0; i < 300; ++i) pull(*worker, table, {1, 2, 3});
    done = true;
    EXPECT_LT(clock.now() - start, std::chrono::seconds(30));
  }
}

TEST_F(WorkerTest, EveryPartIsSentThoughAnotherThreadMakesTheRoomForIt) {
  // A part waits until those before it are gone, and another thread's call may be what sends them: just before this one
  // begins to wait, too.
  for (const bool sockets : {false, true}) {
    const TestingCluster cluster({.sockets = sockets});
    const auto worker = cluster.worker();
    const std::vector<float> ones(6 << 20, 1);
    const Table table = create(*worker, dense("w", ones.size()));
    std::atomic<bool> done{false};
    const std::jthread other([&] {
      while (!done) EXPECT_TRUE(worker->lend(1));
    });
    for (int i = 0; i < 12; ++i) ok(worker->push_rows(table, 0, ones));
    done = true;
    EXPECT_THAT(pull(*worker, table, {0, ones.size() / 2, ones.size() - 1}), Each(12));
  }
}

TEST_F(WorkerTest, APushThatCannotBeSentInTimeReturns) {
  // Two parts wait at the owner for a worker that never comes, the third to be sent, the fourth to be copied.
  for (const bool sockets : {false, true}) {
    const TestingCluster cluster({.workers = 2, .workers_min = 1, .sockets = sockets});
    const auto other = cluster.worker(1);
    NodeOptions options = cluster.node(Role::kWorker);
    options.rank = 0;
    options.request_timeout_ms = 3000;
    const auto worker = TestingCluster::worker(options);
    const std::vector<float> ones(6 << 20, 1);
    TableSpec some = dense("w", ones.size());
    some.consistency = Consistency::bsp();
    const Table table = create(*worker, some);
    create(*other, some);
    (void)worker->clock();
    std::vector<float> out(ones.size());
    const Result<> result = worker->push_pull_rows(table, 0, ones, out).wait();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kTimeout) << result.error().message;
  }
}

TEST_F(WorkerTest, ThreadsOfWorkersMayDoTheServersWork) {
  const TestingCluster cluster({.owners = 2, .workers = 3, .work = LocalWork::kThreadsOfWorkers});
  cluster.run_workers([](Worker& worker) {
    const Table table = create(worker, spec("w"));
    for (int i = 0; i < 200; ++i) {
      const Ticket pushed = worker.push(table, std::vector<Key>{1, 2, 3, 4}, std::vector<float>(4, 1));
      EXPECT_THAT(pull(worker, table, {1, 2, 3, 4}), Each(testing::Gt(i)));  // our own at least
      ok(pushed);
    }
    EXPECT_TRUE(worker.barrier());
    EXPECT_THAT(pull(worker, table, {1, 2, 3, 4}), Each(600));
  });
}

TEST_F(WorkerTest, WhatIsPushedIsPulled) {
  TestingCluster cluster({.servers = 2, .owners = 2});
  const auto worker = cluster.worker();
  EXPECT_EQ(worker->rank(), 0);
  EXPECT_EQ(worker->workers(), 1);
  EXPECT_EQ(worker->servers(), 2);
  const Table table = create(*worker, spec("w"));
  const std::vector<Key> keys = {0, 1, 2, 1000, UINT64_MAX};
  push(*worker, table, keys, {1, 2, 3, 4, 5});
  push(*worker, table, {2, UINT64_MAX}, {10, 10});
  EXPECT_THAT(pull(*worker, table, keys), ElementsAre(1, 2, 13, 4, 15));
  EXPECT_THAT(pull(*worker, table, {77}), ElementsAre(0));
  std::vector<float> out(2);
  ok(worker->push_pull(table, std::vector<Key>{1, 2}, std::vector<float>{1, 1}, out));
  EXPECT_THAT(out, ElementsAre(3, 14));
  EXPECT_TRUE(worker->leave());
  EXPECT_TRUE(worker->leave());
}

TEST_F(WorkerTest, LargeRequestsCrossAllOwnersAndPartsInOrder) {
  TestingCluster cluster({.servers = 2, .owners = 2});
  const auto worker = cluster.worker();
  const Table table = create(*worker, spec("w"));
  std::vector<Key> keys(300'000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i * 3;
  std::vector<float> values(keys.size());
  std::iota(values.begin(), values.end(), 1.0f);
  ok(worker->push(table, keys, values));
  EXPECT_EQ(pull(*worker, table, keys), values);
}

TEST_F(WorkerTest, RowsOfADenseTableNeedNoKeys) {
  TestingCluster cluster({.servers = 2});
  const auto worker = cluster.worker();
  const Table table = create(*worker, dense("d", 1000, 2));
  std::vector<float> values(1000 * 2);
  std::iota(values.begin(), values.end(), 0.0f);
  ok(worker->push_rows(table, 0, values));
  std::vector<float> out(20);
  ok(worker->pull_rows(table, 495, out));
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], values[495 * 2 + i]);
  ok(worker->push_pull_rows(table, 499, std::vector<float>{1, 1, 1, 1}, std::span(out).first(4)));
  EXPECT_THAT(std::vector<float>(out.begin(), out.begin() + 4), ElementsAre(999, 1000, 1001, 1002));
  EXPECT_THAT(pull(*worker, table, {0, 999}), ElementsAre(0, 1, 1998, 1999));
}

TEST_F(WorkerTest, ATicketsCallbackRunsOnAnotherThreadAndMayAskForMore) {
  TestingCluster cluster;
  const auto worker = cluster.worker();
  const Table table = create(*worker, spec("w"));
  std::promise<std::thread::id> ran;
  std::vector<float> out(1);
  const Ticket ticket = worker->push(table, std::vector<Key>{1}, std::vector<float>{1});
  ticket.then([&](const Result<>&) {
    worker->pull(table, std::vector<Key>{1}, out).then([&](const Result<>& result) {
      EXPECT_TRUE(result);
      ran.set_value(std::this_thread::get_id());
    });
  });
  auto id = ran.get_future();
  ASSERT_EQ(id.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_EQ(out[0], 1);
  EXPECT_TRUE(ticket.done());
}

TEST_F(WorkerTest, ATableIsOpenedByItsName) {
  TestingCluster cluster({.servers = 2});
  const auto worker = cluster.worker();
  EXPECT_THAT(worker->open_table("w").error().message, HasSubstr("is none yet"));
  create(*worker, dense("w", 7, 3));
  create(*worker, spec("bias"));
  const auto table = worker->open_table("w");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->spec, dense("w", 7, 3));
  const auto missing = worker->open_table("weights");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_THAT(missing.error().message, testing::AllOf(HasSubstr("'weights'"), HasSubstr("w"), HasSubstr("bias")));
}

TEST_F(WorkerTest, ATableThatCannotBeIsRefused) {
  TestingCluster cluster({.memory_max = 1 << 20});
  const auto worker = cluster.worker();
  const auto large = worker->create_table(dense("d", 1 << 20));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, Code::kInvalid);
  EXPECT_THAT(large.error().message, HasSubstr("memory_max"));
  TableSpec unknown = spec("u");
  unknown.updater.name = "magic";
  EXPECT_THAT(worker->create_table(unknown).error().message, HasSubstr("magic"));
  EXPECT_EQ(worker->create_table(spec("")).error().code, Code::kInvalid);
  create(*worker, spec("w"));
  create(*worker, spec("w"));  // the same again is no error
  TableSpec other = spec("w");
  other.width = 2;
  EXPECT_THAT(worker->create_table(other).error().message, HasSubstr("another spec"));
}

TEST_F(WorkerTest, WrongUseSaysWhatToDoAndTheNextRequestWorks) {
  TestingCluster cluster({.servers = 2});
  const auto worker = cluster.worker();
  const Table table = create(*worker, spec("w"));
  const Table rows = create(*worker, dense("d", 10, 2));
  std::vector<float> out(2);
  const std::vector<float> two = {1, 1};
  const Table stranger{table_id("other"), spec("other")};
  expect_refused(worker->push(stranger, std::vector<Key>{1, 2}, two), Code::kNotFound, "open_table");
  expect_refused(worker->push_rows(stranger, 0, two), Code::kNotFound, "open_table");
  expect_refused(worker->push(table, std::vector<Key>{2, 1}, two), Code::kInvalid, "sort them");
  expect_refused(worker->push(table, std::vector<Key>{1, 1}, two), Code::kInvalid, "sort them");
  expect_refused(worker->push(table, std::vector<Key>{1}, two), Code::kInvalid, "1 floats, not 2");
  expect_refused(worker->pull(table, std::vector<Key>{1, 2, 3}, out), Code::kInvalid, "3 floats, not 2");
  expect_refused(worker->push(table, std::vector<Key>{1, 2}, std::vector<float>{1, NAN}), Code::kInvalid, "key 2");
  expect_refused(worker->push(table, std::vector<Key>{1, 2}, std::vector<float>{INFINITY, 1}), Code::kInvalid, "key 1");
  expect_refused(worker->push_rows(table, 0, two), Code::kInvalid, "use push and pull with keys");
  expect_refused(worker->push_rows(rows, 10, two), Code::kInvalid, "it has 10");
  expect_refused(worker->push_rows(rows, UINT64_MAX, two), Code::kInvalid, "it has 10");
  expect_refused(worker->push_rows(rows, 0, std::vector<float>{1, 1, 1}), Code::kInvalid, "not 3");
  expect_refused(worker->pull(rows, std::vector<Key>{10}, out), Code::kInvalid, "it has 10");
  ok(worker->push(table, {}, {}));
  push(*worker, table, {5}, {1});
  EXPECT_THAT(pull(*worker, table, {5}), ElementsAre(1));
}

TEST_F(WorkerTest, NothingMayBeAskedAfterLeave) {
  TestingCluster cluster;
  const auto worker = cluster.worker();
  const Table table = create(*worker, spec("w"));
  ASSERT_TRUE(worker->leave());
  expect_refused(worker->push(table, std::vector<Key>{1}, std::vector<float>{1}), Code::kInvalid, "has left");
  expect_refused(worker->clock(), Code::kInvalid, "has left");
  EXPECT_EQ(worker->barrier().error().code, Code::kInvalid);
  EXPECT_EQ(worker->create_table(spec("v")).error().code, Code::kInvalid);
}

TEST_F(WorkerTest, UpdatersAreChosenByName) {
  // One step of each on a row of zero with gradient 2; the formulas are those of the papers.
  TestingCluster cluster;
  const auto worker = cluster.worker();
  const auto step = [&](const std::string& name, std::vector<std::pair<std::string, float>> numbers) {
    TableSpec updated = spec("table of " + name);
    updated.updater = {name, std::move(numbers)};
    const Table table = create(*worker, updated);
    push(*worker, table, {1}, {2});
    return pull(*worker, table, {1})[0];
  };
  EXPECT_EQ(step("add", {}), 2);
  EXPECT_EQ(step("assign", {}), 2);
  EXPECT_FLOAT_EQ(step("sgd", {{"learning_rate", 0.5f}}), -1);
  EXPECT_NEAR(step("adagrad", {{"learning_rate", 0.5f}}), -0.5, 1e-5);
  EXPECT_NEAR(step("adam", {{"learning_rate", 0.5f}}), -0.5, 1e-5);
  EXPECT_NEAR(step("ftrl", {{"alpha", 1}, {"beta", 0}}), -1, 1e-5);
}

TEST_F(WorkerTest, AnUpdaterOfYourOwnRunsOnTheServers) {
  struct LargestPushed final : Updater {
    void update(std::span<float> value, std::span<float>, std::span<const float> pushed) const override {
      for (size_t i = 0; i < value.size(); ++i) value[i] = std::max(value[i], pushed[i]);
    }
  };
  TestingCluster::Options options;
  options.updaters.add("largest", [](const UpdaterSpec&) -> Result<std::unique_ptr<Updater>> {
    return std::make_unique<LargestPushed>();
  });
  TestingCluster cluster(options);
  const auto worker = cluster.worker();
  TableSpec largest = spec("w");
  largest.updater.name = "largest";
  const Table table = create(*worker, largest);
  for (const float value : {3.0f, 7.0f, 5.0f}) push(*worker, table, {1}, {value});
  EXPECT_THAT(pull(*worker, table, {1}), ElementsAre(7));
}

TEST_F(WorkerTest, FiltersKeepWhatTheyPromise) {
  TestingCluster cluster({.servers = 2});
  const auto worker = cluster.worker();
  const std::vector<std::vector<FilterSpec>> lists = {
      {{FilterKind::kKeyCaching}},
      {{FilterKind::kLz4}},
      {{FilterKind::kZstd}},
      {{FilterKind::kFixedPoint, 3}},
      {{FilterKind::kFloat16}},
      {{FilterKind::kBfloat16}},
      {{FilterKind::kDropZeros}},
      {{FilterKind::kKeyCaching}, {FilterKind::kFloat16}, {FilterKind::kDropZeros}, {FilterKind::kZstd}},
  };
  int number = 0;
  for (const auto& filters : lists) {
    TableSpec filtered = spec("t" + std::to_string(number++));
    filtered.push_filters = filters;
    filtered.pull_filters = filters;
    const Table table = create(*worker, filtered);
    const std::vector<Key> keys = {1, 2, 3, UINT64_MAX};
    for (int i = 0; i < 3; ++i) push(*worker, table, keys, {1, 0, -0.5, 2});
    const auto values = pull(*worker, table, keys);
    // bfloat16, the coarsest, keeps eight bits.
    EXPECT_THAT(values, ElementsAre(FloatNear(3, 0.03f), 0, FloatNear(-1.5, 0.02f), FloatNear(6, 0.05f))) << number;
  }
}

TEST_F(WorkerTest, ABspClockEndsForAllAtOnce) {
  TestingCluster cluster({.servers = 2, .workers = 3});
  std::atomic<int> created{0};
  cluster.run_workers([&](Worker& worker) {
    const Table table = create(worker, spec("w", Consistency::bsp()));
    ++created;
    for (uint32_t round = 0; round < 10; ++round) {
      const std::vector<Key> keys = {1, 2, 3};
      const float before = static_cast<float>(3 * round);
      EXPECT_THAT(pull(worker, table, keys), Each(before));
      ok(worker.push(table, keys, std::vector<float>{1, 1, 1}));
      EXPECT_THAT(pull(worker, table, keys), Each(before));
      EXPECT_EQ(worker.current_clock(), round);
      ok(worker.clock());
    }
  });
  EXPECT_EQ(created, 3);
}

TEST_F(WorkerTest, BspSumsHaveTheSameBitsInEveryRun) {
  const auto run = [] {
    TestingCluster cluster({.servers = 2, .workers = 3});
    std::vector<float> sums(4);
    cluster.run_workers([&](Worker& worker) {
      const Table table = create(worker, spec("w", Consistency::bsp()));
      Random values(static_cast<uint64_t>(worker.rank()) + 1);
      Random timing = Random::from_system();
      const std::vector<Key> keys = {1, 2, 3, 4};
      for (int round = 0; round < 10; ++round) {
        for (int i = 0; i < 5; ++i) {
          std::vector<float> gradient(keys.size());
          for (float& value : gradient) value = values.normal(0, 1e3f) * std::pow(10.0f, values.normal(0, 2));
          while (timing.chance(0.5)) std::this_thread::yield();
          worker.push(table, keys, gradient);
        }
        ok(worker.clock());
      }
      const auto mine = pull(worker, table, keys);
      if (worker.rank() == 0) sums = mine;
    });
    return sums;
  };
  EXPECT_EQ(run(), run());
}

TEST_F(WorkerTest, TablesOfOneJobMayHaveDifferentConsistency) {
  TestingCluster cluster({.workers = 2});
  cluster.run_workers([&](Worker& worker) {
    const Table slow = create(worker, spec("slow", Consistency::bsp()));
    const Table fast = create(worker, spec("fast"));
    EXPECT_TRUE(worker.barrier());
    for (const Table& table : {slow, fast}) ok(worker.push(table, std::vector<Key>{1}, std::vector<float>{1}));
    ok(worker.push(fast, std::vector<Key>{2}, std::vector<float>{1}));
    EXPECT_TRUE(worker.barrier());
    EXPECT_THAT(pull(worker, slow, {1}), ElementsAre(0));
    EXPECT_THAT(pull(worker, fast, {1}), ElementsAre(2));
    ok(worker.clock());
    EXPECT_THAT(pull(worker, slow, {1}), ElementsAre(2));
  });
}

TEST_F(WorkerTest, OneThatComesLateStartsAtTheClockOfTheOthers) {
  TestingCluster cluster({.workers = 2, .workers_min = 1});
  const auto first = cluster.worker();
  const Table table = create(*first, spec("w", Consistency::ssp(1)));
  for (int i = 0; i < 3; ++i) ok(first->clock());
  const auto second = cluster.worker();
  EXPECT_EQ(second->current_clock(), 3u);
  EXPECT_EQ(second->workers(), 2);
}

TEST_F(WorkerTest, DestroyingAWorkerEndsItsTickets) {
  TestingCluster cluster({.workers = 2});
  std::vector<float> out(1);
  std::vector<Ticket> tickets;
  std::promise<Result<>> called;
  std::jthread other([&] {
    const auto slow = cluster.worker(1);
    create(*slow, spec("w", Consistency::bsp()));
    EXPECT_TRUE(slow->barrier());
    called.get_future().wait();
    EXPECT_TRUE(slow->leave());
  });
  {
    const auto worker = cluster.worker(0);
    const Table table = create(*worker, spec("w", Consistency::bsp()));
    EXPECT_TRUE(worker->barrier());
    tickets.push_back(worker->clock());
    tickets.push_back(worker->pull(table, std::vector<Key>{1}, out));
    tickets.back().then([&](const Result<>& result) { called.set_value(result); });
  }
  for (const Ticket& ticket : tickets) {
    EXPECT_TRUE(ticket.done());
    EXPECT_FALSE(ticket.wait());
  }
}

TEST_F(WorkerTest, ManyThreadsMayUseOneWorker) {
  TestingCluster cluster({.servers = 2, .owners = 2});
  const auto worker = cluster.worker();
  const Table table = create(*worker, spec("w"));
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 200; ++n) {
          const Ticket ticket = worker->push(table, std::vector<Key>{1, 2, 3}, std::vector<float>{1, 1, 1});
          if (n % 10 == 0) ok(ticket);
        }
      });
    }
  }
  // A thread's last pushes may still be under way; those of the channel come before this read.
  EXPECT_THAT(pull(*worker, table, {1, 2, 3}), Each(800));
}

}  // namespace
}  // namespace pscloud

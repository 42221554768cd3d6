#include "pscloud/table_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <optional>
#include <thread>

#include "base/log.h"
#include "engine/table/row_versions.h"
#include "engine/testing_cluster.h"

namespace pscloud {
namespace {

using testing::Each;
using testing::HasSubstr;

class TableViewTest : public testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::kSilent); }
  void TearDown() override { set_log_level(LogLevel::kInfo); }

  static TableSpec dense(uint64_t rows, uint32_t width, Consistency consistency = {}) {
    TableSpec spec;
    spec.name = "w";
    spec.kind = TableKind::kDense;
    spec.rows = rows;
    spec.width = width;
    spec.consistency = consistency;
    return spec;
  }
  static std::vector<float> counting(size_t count) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 1.0f);
    return values;
  }
  static std::vector<float> all_of(const TableView& view) {
    std::vector<float> all;
    for (const TableView::Run& run : view.runs()) all.insert(all.end(), run.values.begin(), run.values.end());
    return all;
  }
  static TableView view_of(Worker& worker, const Table& table) {
    auto view = worker.view(table);
    EXPECT_TRUE(view) << view.error().message;
    return view ? *view : TableView(1, {}, nullptr);
  }
  // Each() would take seconds for millions.
  static bool all_are(std::span<const float> values, float expected) {
    return std::ranges::all_of(values, [&](float value) { return value == expected; });
  }
  static bool in_place(const TableView& view) {
    return std::ranges::all_of(view.runs(), [](const TableView::Run& run) { return !run.versions.empty(); });
  }
};

TEST_F(TableViewTest, RowsOfServersOnThisMachineAreReadWhereTheyLie) {
  const TestingCluster cluster({.servers = 2, .owners = 2, .sockets = true});
  const auto worker = cluster.worker();
  ASSERT_EQ(worker->transport(), "shm");
  const Table table = *worker->create_table(dense(1000, 3));
  const auto values = counting(3000);
  ASSERT_TRUE(worker->push_rows(table, 0, values).wait());
  const TableView view = view_of(*worker, table);
  EXPECT_TRUE(in_place(view));
  EXPECT_EQ(view.runs().size(), 4u);
  EXPECT_EQ(all_of(view), values);

  // The same memory shows what comes later, and tells that it has changed.
  const uint64_t before = view.version(0, 1000);
  EXPECT_NE(before, 0u);
  EXPECT_EQ(view.version(0, 1000), before);
  const TableView second = view_of(*worker, table);
  EXPECT_EQ(second.runs()[3].values.data(), view.runs()[3].values.data());
  ASSERT_TRUE(worker->push_rows(table, 999, std::vector<float>{1, 1, 1}).wait());
  EXPECT_EQ(view.runs()[3].values.back(), 3001);
  EXPECT_NE(view.version(0, 1000), before);
  EXPECT_NE(view.version(999, 1), 0u);
  std::vector<float> two_rows(6);
  ASSERT_TRUE(view.read(249, two_rows));  // of two owners
  EXPECT_EQ(two_rows, (std::vector<float>{748, 749, 750, 751, 752, 753}));
}

TEST_F(TableViewTest, AViewSeesOwnPushesThatNobodyWaitedFor) {
  const TestingCluster cluster({.sockets = true});
  const auto worker = cluster.worker();
  const Table table = *worker->create_table(dense(3'000'000, 1));
  const std::vector<float> ones(3'000'000, 1);
  for (int i = 1; i <= 3; ++i) {
    (void)worker->push_rows(table, 0, ones);
    EXPECT_TRUE(all_are(view_of(*worker, table).runs()[0].values, static_cast<float>(i))) << i;
  }
}

TEST_F(TableViewTest, WhereNoMemoryIsSharedItIsACopy) {
  const TestingCluster cluster({.servers = 2});
  const auto worker = cluster.worker();
  ASSERT_EQ(worker->transport(), "inproc");
  const Table table = *worker->create_table(dense(10, 2));
  const auto values = counting(20);
  ASSERT_TRUE(worker->push_rows(table, 0, values).wait());
  const TableView view = view_of(*worker, table);
  EXPECT_FALSE(in_place(view));
  EXPECT_NE(view.version(0, 10), 0u);
  ASSERT_TRUE(worker->push_rows(table, 0, values).wait());
  EXPECT_EQ(all_of(view), values);  // as it was
  EXPECT_EQ(view_of(*worker, table).runs()[0].values[1], 4);
}

TEST_F(TableViewTest, FiltersForPullsAreNotGoneAround) {
  const TestingCluster cluster({.sockets = true});
  const auto worker = cluster.worker();
  TableSpec spec = dense(10, 1);
  spec.pull_filters = {{.kind = FilterKind::kBfloat16}};
  const Table table = *worker->create_table(spec);
  ASSERT_TRUE(worker->push_rows(table, 0, std::vector<float>(10, 1.001f)).wait());
  const TableView view = view_of(*worker, table);
  EXPECT_FALSE(in_place(view));
  EXPECT_THAT(all_of(view), Each(1.0f));
}

TEST_F(TableViewTest, WhatMakesNoSenseIsRefused) {
  const TestingCluster cluster({.sockets = true});
  const auto worker = cluster.worker();
  TableSpec sparse;
  sparse.name = "sparse";
  EXPECT_THAT(worker->view(*worker->create_table(sparse)).error().message, HasSubstr("only a dense one"));
  EXPECT_EQ(worker->view(Table{7, dense(1, 1)}).error().code, Code::kNotFound);
  const TableView view = view_of(*worker, *worker->create_table(dense(10, 2)));
  std::vector<float> out(4);
  EXPECT_EQ(view.read(9, out).error().code, Code::kInvalid);
  EXPECT_EQ(view.read(UINT64_MAX, out).error().code, Code::kInvalid);
  EXPECT_EQ(view.read(0, std::span(out).first(3)).error().code, Code::kInvalid);
  EXPECT_EQ(view.version(9, 2), 0u);
  EXPECT_TRUE(view.read(8, out));
  EXPECT_TRUE(view.read(10, {}));
}

TEST_F(TableViewTest, AViewOutlivesTheJob) {
  std::optional<TableView> view;
  {
    const TestingCluster cluster({.sockets = true});
    const auto worker = cluster.worker();
    const Table table = *worker->create_table(dense(100'000, 1));
    ASSERT_TRUE(worker->push_rows(table, 0, std::vector<float>(100'000, 2)).wait());
    view = view_of(*worker, table);
    ASSERT_TRUE(worker->leave());
  }
  EXPECT_TRUE(all_are(view->runs()[0].values, 2));
}

TEST_F(TableViewTest, InABspTableNothingChangesWithinAClock) {
  const TestingCluster cluster({.workers = 2, .sockets = true});
  cluster.run_workers([](Worker& worker) {
    const Table table = *worker.create_table(dense(5000, 1, Consistency::bsp()));
    const std::vector<float> ones(5000, 1);
    for (int clock = 0; clock < 20; ++clock) {
      const TableView view = view_of(worker, table);
      const uint64_t before = view.version(0, 5000);
      ASSERT_NE(before, 0u);
      ASSERT_TRUE(worker.push_rows(table, 0, ones).wait());
      EXPECT_TRUE(all_are(all_of(view), 2.0f * static_cast<float>(clock))) << clock;
      EXPECT_EQ(view.version(0, 5000), before);
      ASSERT_TRUE(worker.clock().wait());
    }
  });
}

// One worker writes all the time, another reads: whole rows, whatever it meets.
TEST_F(TableViewTest, ARowIsNeverTorn) {
  const TestingCluster cluster({.workers = 2, .sockets = true});
  std::atomic<bool> done{false};
  cluster.run_workers([&](Worker& worker) {
    const uint32_t width = 1000;
    const Table table = *worker.create_table(dense(40, width));
    ASSERT_TRUE(worker.barrier());
    if (worker.rank() == 0) {
      const std::vector<float> ones(size_t{40} * width, 1);
      while (!done) (void)worker.push_rows(table, 0, ones).wait();
      return;
    }
    const TableView view = view_of(worker, table);
    std::vector<float> out(size_t{40} * width);
    float last = 0, newest = 0;
    for (int i = 0; i < 300 || newest < 50; ++i) {
      ASSERT_TRUE(view.read(0, out));
      for (size_t row = 0; row < 40; ++row) {
        const std::span<const float> values(out.data() + row * width, width);
        ASSERT_TRUE(all_are(values, values[0]));
        newest = std::max(newest, values[0]);
      }
      ASSERT_GE(newest, last);
      last = newest;
    }
    done = true;
  });
}

TEST(RowVersions, TellOfWritesToTheirBlocksOnly) {
  std::vector<uint64_t> words(version_count(100, 1000));
  ASSERT_EQ(words.size(), 25u);  // four rows each
  RowVersionWriter writer(words, 1000);
  const uint64_t idle = version_of(words);
  EXPECT_NE(idle, 0u);
  writer.begin(7, 2);  // blocks 1 and 2
  EXPECT_EQ(version_of(words), 0u);
  EXPECT_NE(version_of(std::span(words).first(1)), 0u);
  EXPECT_EQ(version_of(std::span(words).subspan(2, 1)), 0u);
  EXPECT_NE(version_of(std::span(words).subspan(3)), 0u);
  writer.end(7, 2);
  EXPECT_NE(version_of(words), 0u);
  EXPECT_NE(version_of(words), idle);
}

}  // namespace
}  // namespace pscloud

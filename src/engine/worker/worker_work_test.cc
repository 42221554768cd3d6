// Work, tallies and scans, as a worker's program uses them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "base/log.h"
#include "base/mutex.h"
#include "engine/testing_cluster.h"
#include "pscloud/worker.h"

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class WorkerWorkTest : public testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::kSilent); }
  void TearDown() override { set_log_level(LogLevel::kInfo); }
};

TEST_F(WorkerWorkTest, WorkersShareTheItemsAndAllSeeTheEnd) {
  const TestingCluster cluster({.servers = 2, .workers = 3});
  std::vector<std::string> items;
  for (int i = 0; i < 100; ++i) items.push_back("item " + std::to_string(i));
  Mutex mutex;
  std::map<std::string, int> done;
  cluster.run_workers([&](Worker& worker) {
    EXPECT_TRUE(worker.offer_work("all", items).value());
    while (true) {
      const auto item = worker.take_work("all");
      ASSERT_TRUE(item) << item.error().message;
      if (!*item) break;
      EXPECT_FALSE((*item)->repeated);
      EXPECT_EQ((*item)->text, items.at((*item)->number));
      const std::vector<Addend> addends{{0, 1}, {1, static_cast<double>((*item)->number)}};
      EXPECT_TRUE(worker.finish_work("all", (*item)->number, addends).value());
      MutexLock lock(mutex);
      ++done[(*item)->text];
    }
    EXPECT_THAT(worker.tally("all", {}, 0, 3).value(), ElementsAre(100, 4950, 0));
  });
  EXPECT_EQ(done.size(), 100u);
  for (const auto& [item, times] : done) EXPECT_EQ(times, 1) << item;
}

TEST_F(WorkerWorkTest, WhatAWorkerLeavesUndoneComesToWhoWaits) {
  const TestingCluster cluster({.workers = 2, .workers_min = 1});
  auto first = cluster.worker();
  ASSERT_TRUE(first->offer_work("w", std::vector<std::string>{"only"}));
  ASSERT_TRUE(first->take_work("w").value().has_value());
  std::jthread second([&] {
    const auto worker = cluster.worker();
    const auto item = worker->take_work("w");
    ASSERT_TRUE(item && *item);
    EXPECT_TRUE((*item)->repeated);
    EXPECT_TRUE(worker->finish_work("w", 0).value());
    EXPECT_FALSE(worker->take_work("w").value().has_value());
    EXPECT_TRUE(worker->leave());
  });
  first.reset();  // as one that failed
}

TEST_F(WorkerWorkTest, EverybodyComesToAPause) {
  const TestingCluster cluster({.workers = 2});
  const std::vector<std::string> items(20, "item");
  cluster.run_workers([&](Worker& worker) {
    ASSERT_TRUE(worker.offer_work("w", items, SlowWork::kAwait).value());
    int pauses = 0;
    int items_here = 0;
    while (true) {
      const auto item = worker.take_work("w").value();
      if (!item) break;
      if (item->pause) {
        // Nobody is at an item: what all have done so far stands still.
        const double done = worker.tally("w", {}, 0, 1).value()[0];
        EXPECT_GE(done, 1);
        EXPECT_TRUE(worker.barrier());
        EXPECT_EQ(worker.tally("w", {}, 0, 1).value()[0], done);
        EXPECT_TRUE(worker.barrier());
        ASSERT_TRUE(worker.resume_work("w", item->number));
        EXPECT_FALSE(worker.resume_work("w", item->number).value());
        ++pauses;
        continue;
      }
      if (++items_here == 3 && worker.is_first()) {
        ASSERT_TRUE(worker.pause_work("w", 7));
      }
      const std::vector<Addend> one{{0, 1}};
      ASSERT_TRUE(worker.finish_work("w", item->number, one).value());
    }
    EXPECT_LE(pauses, 1);
    EXPECT_EQ(worker.tally("w", {}, 0, 1).value()[0], 20);
  });
}

TEST_F(WorkerWorkTest, TalliesAddUpInDoubles) {
  const TestingCluster cluster({.workers = 2});
  cluster.run_workers([](Worker& worker) {
    const std::vector<Addend> large{{2, 1e15}, {2, 1}};
    ASSERT_TRUE(worker.tally("sums", large, 0, 0));
    ASSERT_TRUE(worker.barrier());
    EXPECT_THAT(worker.tally("sums", {}, 2, 1).value(), ElementsAre(2e15 + 2));
    EXPECT_THAT(worker.tally("others", {}, 2, 1).value(), ElementsAre(0));
  });
}

TEST_F(WorkerWorkTest, MistakesAreNamed) {
  const TestingCluster cluster;
  const auto worker = cluster.worker();
  EXPECT_THAT(worker->take_work("none").error().message, HasSubstr("no work 'none' has been offered"));
  const std::vector<std::string> long_item{std::string(5000, 'x')};
  EXPECT_THAT(worker->offer_work("w", long_item).error().message, HasSubstr("5000 bytes, at most 4096"));
  EXPECT_THAT(worker->take_work(std::string(300, 'x')).error().message, HasSubstr("a name of 300 bytes"));
  const std::vector<std::string> many(5000, std::string(4096, 'x'));
  EXPECT_THAT(worker->offer_work("w", many).error().message, HasSubstr("5000 items of work 'w'"));
  EXPECT_TRUE(worker->leave());
}

TEST_F(WorkerWorkTest, AScanBringsEveryRowOfEveryPartOnce) {
  const TestingCluster cluster({.servers = 2, .owners = 2});
  const auto worker = cluster.worker();
  TableSpec spec;
  spec.name = "t";
  spec.width = 2;
  spec.updater = {"adagrad", {}};
  const Table table = worker->create_table(spec).value();
  std::vector<Key> keys;
  std::vector<float> values;
  for (Key key = 0; key < 3000; ++key) {
    keys.push_back(key * 7);
    values.push_back(0);
    values.push_back(key % 3 == 0 ? 0.0f : 1.0f);
  }
  ASSERT_TRUE(worker->push(table, keys, values).wait());
  std::vector<float> weights(values.size());
  ASSERT_TRUE(worker->pull(table, keys, weights).wait());
  EXPECT_EQ(worker->parts(), 4);

  const auto scan_all = [&](ScanKind kind, uint64_t& rows, uint64_t& nonzero) {
    std::map<Key, std::vector<float>> all;
    rows = nonzero = 0;
    for (int part = 0; part < worker->parts(); ++part) {
      for (uint64_t first = 0;;) {
        const ScannedRows some = worker->scan(table, part, first, kind).value();
        nonzero += some.nonzero;
        for (size_t i = 0; i < some.keys.size(); ++i) {
          const size_t floats = some.floats.size() / some.keys.size();
          const auto begin = some.floats.begin() + static_cast<ptrdiff_t>(i * floats);
          EXPECT_TRUE(
              all.emplace(some.keys[i], std::vector<float>(begin, begin + static_cast<ptrdiff_t>(floats))).second);
        }
        if (some.next == first) break;
        rows += some.next - first;
        first = some.next;
      }
    }
    return all;
  };
  uint64_t rows = 0;
  uint64_t nonzero = 0;
  EXPECT_TRUE(scan_all(ScanKind::kCount, rows, nonzero).empty());
  EXPECT_EQ(rows, 3000u);
  EXPECT_EQ(nonzero, 2000u);
  EXPECT_EQ(scan_all(ScanKind::kNonzero, rows, nonzero).size(), 2000u);
  const auto all = scan_all(ScanKind::kAll, rows, nonzero);
  ASSERT_EQ(all.size(), 3000u);
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_THAT(all.at(keys[i]), ElementsAre(weights[2 * i], weights[2 * i + 1]));
  }
  const auto states = scan_all(ScanKind::kState, rows, nonzero);
  EXPECT_THAT(states.at(7), ElementsAre(0, weights[3], 0, 1));  // the sum of squares beside each weight

  EXPECT_THAT(worker->scan(table, 4, 0, ScanKind::kAll).error().message, HasSubstr("it has 4"));
  EXPECT_TRUE(worker->leave());
}

TEST_F(WorkerWorkTest, ADenseTableIsScannedByRows) {
  const TestingCluster cluster({.servers = 2});
  const auto worker = cluster.worker();
  TableSpec spec;
  spec.name = "d";
  spec.kind = TableKind::kDense;
  spec.rows = 5;
  const Table table = worker->create_table(spec).value();
  const std::vector<float> values{1, 2, 3, 0, 5};
  ASSERT_TRUE(worker->push_rows(table, 0, values).wait());
  std::map<Key, float> all;
  for (int part = 0; part < 2; ++part) {
    const ScannedRows some = worker->scan(table, part, 0, ScanKind::kNonzero).value();
    for (size_t i = 0; i < some.keys.size(); ++i) all[some.keys[i]] = some.floats[i];
  }
  EXPECT_EQ(all, (std::map<Key, float>{{0, 1}, {1, 2}, {2, 3}, {4, 5}}));
  EXPECT_TRUE(worker->leave());
}

// As a checkpoint is: scanned from two servers, set on three.
TEST_F(WorkerWorkTest, ScannedRowsCanBeSetOnAnyNumberOfServers) {
  TableSpec spec;
  spec.name = "t";
  spec.updater = {"ftrl", {}};
  std::vector<Key> keys(200000);  // more than a message holds
  std::vector<float> gradient(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i] = i * 3;
    gradient[i] = 1 + static_cast<float>(i % 100);
  }
  std::vector<ScannedRows> saved;
  std::vector<float> before(keys.size());
  {
    const TestingCluster cluster({.servers = 2});
    const auto worker = cluster.worker();
    const Table table = worker->create_table(spec).value();
    ASSERT_TRUE(worker->push(table, keys, gradient).wait());
    for (int part = 0; part < worker->parts(); ++part) {
      for (uint64_t first = 0;;) {
        saved.push_back(worker->scan(table, part, first, ScanKind::kState).value());
        if (saved.back().next == first) break;
        first = saved.back().next;
      }
    }
    ASSERT_TRUE(worker->push(table, keys, gradient).wait());
    ASSERT_TRUE(worker->pull(table, keys, before).wait());
    EXPECT_TRUE(worker->leave());
  }
  const TestingCluster cluster({.servers = 3});
  const auto worker = cluster.worker();
  const Table table = worker->create_table(spec).value();
  for (const ScannedRows& rows : saved) {
    ASSERT_TRUE(worker->set_rows(table, rows.keys, rows.floats, ScanKind::kState).wait());
  }
  ASSERT_TRUE(worker->push(table, keys, gradient).wait());
  std::vector<float> after(keys.size());
  ASSERT_TRUE(worker->pull(table, keys, after).wait());
  EXPECT_EQ(after, before);

  const std::vector<Key> two{1, 2};
  const std::vector<float> three{1, 2, 3};
  EXPECT_THAT(worker->set_rows(table, two, three, ScanKind::kState).wait().error().message, HasSubstr("3 floats"));
  EXPECT_THAT(worker->set_rows(table, two, std::vector<float>{1, 2}, ScanKind::kState).wait().error().message,
              HasSubstr("1 rows of width 3 need 3 floats, not 1"));
  EXPECT_TRUE(worker->leave());
}

}  // namespace
}  // namespace pscloud

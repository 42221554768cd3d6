#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "pscloud/node.h"
#include "pscloud/worker.h"

namespace pscloud {

// A whole job in this process, for tests: scheduler and servers at work, workers as the test asks for them.
class TestingCluster {
 public:
  struct Options {
    int servers = 1;
    int owners = 1;
    int workers = 1;
    int workers_min = 0;
    uint64_t memory_max = uint64_t{1} << 30;
    UpdaterCatalog updaters = {};
    bool sockets = false;  // as between processes of one machine: through shared memory
    LocalWork work = LocalWork::kOwnThreads;
  };
  TestingCluster() : TestingCluster(Options{}) {}
  explicit TestingCluster(const Options& options) : options_(options) {
    NodeOptions scheduler = node(Role::kScheduler);
    scheduler.servers = options.servers;
    scheduler.workers = options.workers;
    scheduler.workers_min = options.workers_min;
    add(scheduler);
    if (options.sockets) scheduler_ = nodes_.front()->address();
    for (int i = 0; i < options.servers; ++i) {
      NodeOptions server = node(Role::kServer);
      server.rank = i;
      server.owners = options.owners;
      server.memory_max = options.memory_max;
      add(server);
    }
  }

  NodeOptions node(Role role) const {
    NodeOptions options;
    options.role = role;
    if (options_.sockets) {
      options.insecure = true;
      options.scheduler = scheduler_;
    } else {
      options.scheduler = "inproc:scheduler";
      options.local = network_;
    }
    options.join_timeout_ms = 30000;
    return options;
  }

  // Joins; a test that gets none has failed.
  std::unique_ptr<Worker> worker(int rank = -1) const {
    NodeOptions options = node(Role::kWorker);
    options.rank = rank;
    return worker(options);
  }
  static std::unique_ptr<Worker> worker(const NodeOptions& options) {
    auto joined = Worker::join(options);
    if (!joined) {
      ADD_FAILURE() << joined.error().message;
      return nullptr;
    }
    return *std::move(joined);
  }

  // All workers of the job, each on a thread of its own, by rank; returns when all have ended.
  void run_workers(const std::function<void(Worker&)>& program) const {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < options_.workers; ++rank) {
      threads.emplace_back([this, rank, &program] {
        const auto mine = worker(rank);
        if (!mine) return;
        program(*mine);
        const Result<> left = mine->leave();
        EXPECT_TRUE(left) << left.error().message;
      });
    }
  }

  // Scheduler first, then the servers.
  Node& at(size_t index) { return *nodes_.at(index); }
  size_t size() const { return nodes_.size(); }

 private:
  void add(const NodeOptions& options) {
    auto started = Node::start(options, options_.updaters);
    ASSERT_TRUE(started) << started.error().message;
    nodes_.push_back(*std::move(started));
  }

  const Options options_;
  std::string scheduler_ = "127.0.0.1:0";  // then where it really listens
  std::shared_ptr<LocalNetwork> network_ = make_local_network(options_.work);
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace pscloud

#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "cli/local_cluster.h"
#include "io/watched_store.h"
#include "pscloud/worker.h"

namespace pscloud {

inline int all_cores() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

// Files that can no longer be read once the user wants no more.
inline WatchedStore until_cancelled(FileStore& store, const Cancelled& cancelled) {
  return {store, [cancelled](size_t) -> Result<> {
            if (cancelled()) return job_failed("interrupted");
            return {};
          }};
}

// A job within this process: `work` on so many threads, each of them a worker, and a server. Each that ends well knows
// how all went, so the first is enough.
template <class T>
Result<T> run_local_workers(int threads, const Cancelled& cancelled, const std::function<Result<T>(Worker&)>& work) {
  LocalClusterSpec spec;
  spec.workers = threads;
  spec.transport.name = "inproc";
  const auto cluster = TRY(LocalCluster::start(spec, cancelled));
  const auto run_one = [&]() -> Result<T> {
    const auto worker = TRY(Worker::join(cluster->worker_options()));
    auto result = work(*worker);
    TRY(worker->leave());  // also after an error: within one process nobody needs to hear of a death
    return result;
  };
  Mutex mutex;
  std::optional<Result<T>> outcome;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) {
      workers.emplace_back([&] {
        auto one = run_one();
        MutexLock lock(mutex);
        if (!outcome || !*outcome) outcome = std::move(one);
      });
    }
  }
  auto result = TRY(*std::move(outcome));
  TRY(cluster->wait());
  return result;
}

}  // namespace pscloud

#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "cli/local/local_cluster.h"
#include "io/watched_store.h"
#include "pscloud/worker.h"

namespace pscloud {

inline int all_cores() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

// Files that can no longer be read once the user wants no more.
inline WatchedStore until_cancelled(FileStore& store, const Cancelled& cancelled,
                                    uint64_t ahead_bytes_max = ByteRange{}.ahead_bytes_max) {
  return {store,
          [cancelled](size_t) -> Result<> {
            if (cancelled()) return job_failed("interrupted");
            return {};
          },
          ahead_bytes_max};
}

// What several workers end with. Each that ends well knows how all went, so one of them is enough. Thread-safe.
template <class T>
class Outcomes {
 public:
  void add(Result<T> one) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!one) failures_.push_back(one.error().message);
    if (!outcome_ || !*outcome_) outcome_ = std::move(one);
  }
  Result<T> result() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!outcome_) return unavailable("no worker has ended");
    return *outcome_;
  }
  std::vector<std::string> failures() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return failures_;
  }

 private:
  mutable Mutex mutex_;
  std::optional<Result<T>> outcome_ GUARDED_BY(mutex_);
  std::vector<std::string> failures_ GUARDED_BY(mutex_);
};

// `work` on so many threads, each of them a worker that joins by `options`.
template <class T>
Result<T> join_workers(const NodeOptions& options, int threads, const std::function<Result<T>(Worker&)>& work) {
  const auto run_one = [&]() -> Result<T> {
    const auto worker = TRY(Worker::join(options));
    auto result = work(*worker);
    // Within one process nobody needs to hear of a death. Elsewhere the others hear why: they may go on without it.
    if (result || options.local) {
      TRY(worker->leave());
    } else {
      (void)worker->give_up(result.error().message);
    }
    return result;
  };
  Outcomes<T> outcomes;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) workers.emplace_back([&] { outcomes.add(run_one()); });
  }
  return outcomes.result();
}

// The same with a scheduler and a server for them, all within this process.
template <class T>
Result<T> run_local_workers(int threads, const Cancelled& cancelled, const std::function<Result<T>(Worker&)>& work) {
  LocalClusterSpec spec;
  spec.workers = threads;
  spec.transport.name = "inproc";
  const auto cluster = TRY(LocalCluster::start(spec, cancelled));
  auto result = TRY(join_workers<T>(cluster->worker_options(), threads, work));
  TRY(cluster->wait());
  return result;
}

}  // namespace pscloud

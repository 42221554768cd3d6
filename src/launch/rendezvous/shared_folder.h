#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/task.h"
#include "pscloud/error.h"

namespace pscloud {

// The folder in which the tasks of one job and their leader meet, on a disk that all their machines share:
// `<shared>/<job>/`, docs/rendezvous.md has its files. A file appears under its name whole or not at all. Made for NFS:
// nothing is asked by a name before a listing has shown it (that it is missing would be remembered for a minute), and
// whatever is looked at is opened anew, for only that asks the file's server.
class SharedFolder {
 public:
  // Changes whenever the file is touched or written. The clocks of machines differ: stamps are compared, never read.
  struct Stamp {
    int64_t seconds = 0;
    int64_t nanoseconds = 0;
    bool operator==(const Stamp&) const = default;
  };

  // Makes it, mode 0700, with the folders above it; one that is there is taken as it is.
  static Result<SharedFolder> make(const std::string& shared, const std::string& job);
  // kNotFound if it is not there.
  static Result<SharedFolder> open(const std::string& path);

  const std::string& path() const { return path_; }
  std::string path_of(std::string_view name) const;

  // The files, by name; those that are being written are not shown.
  Result<std::vector<std::string>> names() const;
  // kNotFound if there is none, kInvalid if it is longer than `bytes_max`.
  Result<std::string> read(std::string_view name, uint64_t bytes_max = kFileBytesMax) const;
  // What a file that grows has from `offset` on, `bytes_max` at most.
  Result<std::string> read_from(std::string_view name, uint64_t offset, uint64_t bytes_max) const;
  Result<Stamp> stamp(std::string_view name) const;

  // In place of what has this name; mode 0600.
  Result<> write(std::string_view name, std::string_view content) const;
  // The same, but kInvalid if somebody has that name already.
  Result<> create(std::string_view name, std::string_view content) const;
  Result<> touch(std::string_view name) const;

  // With all that is in it. Ok if it is gone already.
  static Result<> remove(const std::string& path);

  static constexpr uint64_t kFileBytesMax = uint64_t{16} << 20;

 private:
  explicit SharedFolder(std::string path) : path_(std::move(path)) {}
  Result<std::string> write_aside(std::string_view name, std::string_view content) const;

  std::string path_;
};

// The names of its files.
namespace folder_file {
inline constexpr std::string_view kCluster = "cluster.json";  // who is where: the programs may start
inline constexpr std::string_view kAbort = "abort.json";      // the job has failed: everybody ends
inline constexpr std::string_view kDone = "done.json";        // the job is done: who still runs ends, with code 0
inline constexpr std::string_view kLeader = "leader.json";    // touched while the leader lives
std::string spec(int number);                                 // what the task with this number in the plan must know
std::string arrival(TaskId task, int attempt);                // where it is; touched while it lives
std::string messages(TaskId task, int attempt);               // what it has to say since, a line each
std::string stop(TaskId task);                                // an order for it alone

struct Attempt {
  TaskId task;
  int attempt = 0;
  auto operator<=>(const Attempt&) const = default;
};
// Whose arrival or messages a file holds; none for any other name.
std::optional<Attempt> of_arrival(std::string_view name);
std::optional<Attempt> of_messages(std::string_view name);
}  // namespace folder_file

// Tells who is gone by stamps that stand still, on the watcher's own clock.
class Liveness {
 public:
  using Now = std::chrono::steady_clock::time_point;

  Liveness(std::chrono::milliseconds lost_after, Now start) : lost_after_(lost_after), changed_(start) {}

  // `stamp` as it is now; none if the file could not be looked at. False: it has not changed for too long.
  bool alive(const std::optional<SharedFolder::Stamp>& stamp, Now now);

 private:
  std::chrono::milliseconds lost_after_;
  std::optional<SharedFolder::Stamp> last_;
  Now changed_;
};

// How long to wait before looking again: short at first, longer while nothing happens.
class Backoff {
 public:
  static constexpr std::chrono::milliseconds kShortest{50};
  static constexpr std::chrono::milliseconds kLongest{2000};

  explicit Backoff(std::chrono::milliseconds longest = kLongest) : longest_(longest) {}
  std::chrono::milliseconds next();
  void reset() { next_ = kShortest; }

 private:
  std::chrono::milliseconds longest_;
  std::chrono::milliseconds next_ = kShortest;
};

}  // namespace pscloud

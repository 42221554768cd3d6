#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "launch/backend.h"

namespace pscloud {

// A cluster that is made up: a task does what the words of its command say, so that the launcher's own logic can be
// tried. Words: copy=MS (made-up time that its start takes), late=MS (until it arrives), never, absent (its machine is
// lost before); then, once it is released, in this order as they stand: print=TEXT, error=TEXT, cpu=PERCENT (a sample),
// wait=MS, hang, notice=SECONDS (its machine is taken away then), exit=CODE, signal=N, lose; and for its end: slow=MS
// (to stop), deaf (to SIGTERM), undead (to SIGKILL too). The end of the words is exit=0. What comes after the word
// `then` is for when it is begun once more. While a task is there so is a file in the run's folder, "fake/worker-0",
// for kill -9 to leave behind.
class FakeBackend final : public Backend {
 public:
  using Now = std::chrono::steady_clock::time_point;

  // With a seed time is made up too: it passes in wait() only, and what happens at one moment comes in any order.
  FakeBackend(Cluster cluster, std::string run_folder, std::optional<uint64_t> seed);

  Result<> check(const Plan& plan) override;
  Result<> start(const Plan& plan, Ledger& ledger) override;
  Result<> release(const ClusterView& view) override;
  Result<> stop(TaskId task, bool at_once) override;
  Result<> restart(const Plan& plan, const PlannedTask& task, const Host& host, Ledger& ledger) override;
  Result<std::vector<TaskEvent>> wait(Now deadline, int wake_fd) override;
  Result<std::vector<std::string>> clean(const Plan& plan, Ledger& ledger) override;
  Result<std::vector<std::string>> shell(const Plan& plan, TaskId task) override;

  Now now() const;

 private:
  struct FakeTask {
    std::vector<std::string> words;
    int grace_ms = 0;
    uint64_t entry = 0;  // of the ledger
    bool begun = false;
    bool ended = false;  // its last event is on its way
    bool over = false;   // and was given out
  };

  Result<> start_one(const PlannedTask& planned, std::vector<std::string> words, Ledger& ledger);
  void later(int after_ms, TaskEvent event);
  void begin(TaskId id, FakeTask& task);
  void end_by(TaskId id, FakeTask& task, int after_ms, int signal);
  Result<> give_out(std::vector<TaskEvent>& events);
  std::string file_of(const std::string& task) const;
  void die_at(std::string_view step) const;

  const Cluster cluster_;
  const std::string folder_;
  std::optional<Random> random_;
  Now made_up_now_{std::chrono::hours(1)};
  Ledger* ledger_ = nullptr;  // borrowed at start()
  std::map<TaskId, FakeTask> tasks_;
  std::multimap<Now, TaskEvent> coming_;
};

inline constexpr BackendOption kFakeOptions[] = {
    {"check", "a fault that is found before the start"},
    {"die", "the launcher is killed in check, start, release, stop or clean"},
};
Result<std::unique_ptr<Backend>> make_fake_backend(const Cluster& cluster, const std::string& run_folder);

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/local/line_channel.h"
#include "pscloud/worker.h"

namespace pscloud {

// What every worker of an adder must agree on.
struct AdderPlan {
  double size_mb = 100;
  bool sync = true;
  bool lent = false;  // push from memory that the servers read in place, and read the sums in theirs

  uint64_t rows() const;
};

// One iteration of one worker. Push and pull are NaN where one request does both.
struct AdderSample {
  double push_ms = 0;
  double pull_ms = 0;
  double iteration_ms = 0;
  double cpu_s = 0;                                         // of this process, in the timed part
  double value = std::numeric_limits<double>::quiet_NaN();  // a parameter afterwards; NaN where nobody tells
};

// One worker of the adder. It pushes ones, the servers add, it pulls the sums.
class AdderWorker {
 public:
  // Returns when all workers are there and have the table.
  static Result<std::unique_ptr<AdderWorker>> join(const NodeOptions& options, const AdderPlan& plan);

  // One iteration of the plan's mode: push and pull in one. In sync mode with others: push, pull, and a barrier behind
  // each. So every value that a sync worker gets is a known number, which is checked after the time was taken.
  Result<AdderSample> iterate();

  // A push, and when that is done a pull: in sync mode what each takes by itself.
  Result<AdderSample> iterate_apart();

  int workers() const { return workers_; }
  std::string transport() const { return worker_->transport(); }
  int servers() const { return worker_->servers(); }

  // Nobody goes on until all are here.
  Result<> meet() { return worker_->barrier(); }

  // Waits for all, checks every value a last time and leaves. True if no value was ever wrong.
  Result<bool> finish();

 private:
  AdderWorker(std::unique_ptr<Worker> worker, Table table, const AdderPlan& plan, LentFloats ones);
  Result<AdderSample> iterate_in_one();
  Result<> pull();
  void check_values();
  float value() const { return view_ ? view_->runs().front().values.front() : sums_.front(); }

  std::unique_ptr<Worker> worker_;
  Table table_;
  const AdderPlan plan_;
  const int workers_;
  const LentFloats ones_;
  std::vector<float> sums_;
  std::optional<TableView> view_;  // instead, if lent
  int pushes_ = 0;
  bool values_ok_ = true;
};

// A worker that another process (or thread) leads, line by line:
//   run N | apart N    answered by N lines of a sample, as encode_sample() makes them
//   finish             answered by "values ok" or "values wrong"
// Before the first order it says "ready TRANSPORT". After an error it says "error CODE MESSAGE" and ends.
Result<> serve_adder_worker(const NodeOptions& options, const AdderPlan& plan, LineChannel lines);

// The other end's half: what those lines say. An error of the worker becomes one here.
std::string encode_sample(const AdderSample& sample);
Result<AdderSample> decode_sample(std::string_view line);
std::string encode_error(const Error& error);
// `line` if it is no error.
Result<std::string> decode_line(std::string line);

}  // namespace pscloud

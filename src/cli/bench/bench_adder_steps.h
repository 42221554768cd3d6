#pragma once

#include <limits>
#include <string>

#include "cli/bench/bench_adder_job.h"
#include "io/tensorboard.h"

namespace pscloud {

// The steps of an adder's first worker for TensorBoard, under psbench's names: time/step, time/worker_push and
// time/worker_fetch in milliseconds, local_rate and global_rate (of all workers) in MB/s, both directions, and
// worker-0, the value that it has got.
class AdderSteps {
 public:
  // Times are in seconds since 1970.
  static Result<AdderSteps> create(const AdderFlags& flags, const std::string& folder, double start_s);

  // `split` is the iteration that times push and pull by themselves, often the same; NaN is left out.
  Result<> write(double now_s, const AdderSample& sample, const AdderSample& split);

  // A whole run that began at `start_s`.
  Result<> write_all(const AdderOutcome& outcome, double start_s);

 private:
  AdderSteps(const AdderFlags& flags, TensorBoardWriter writer)
      : size_mb_(flags.plan.size_mb),
        workers_(flags.cluster.workers),
        sync_(flags.plan.sync),
        writer_(std::move(writer)) {}

  double size_mb_;
  int workers_;
  bool sync_;
  double last_value_ = std::numeric_limits<double>::quiet_NaN();
  TensorBoardWriter writer_;
  int64_t step_ = 0;
};

}  // namespace pscloud

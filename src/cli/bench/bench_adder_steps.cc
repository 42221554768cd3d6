#include "cli/bench/bench_adder_steps.h"

#include <cmath>
#include <utility>
#include <vector>

namespace pscloud {

Result<AdderSteps> AdderSteps::create(const AdderFlags& flags, const std::string& folder, double start_s) {
  return AdderSteps(flags, TRY(TensorBoardWriter::create(folder, start_s)));
}

Result<> AdderSteps::write(double now_s, const AdderSample& sample, const AdderSample& split) {
  const double rate = 2 * size_mb_ / (sample.iteration_ms * 1e-3);
  // Workers that do not wait for each other are not equally fast: the value tells how often all of them have pushed.
  const double pushed = sample.value - std::exchange(last_value_, sample.value);
  const double pushes = sync_ || std::isnan(pushed) ? workers_ : pushed;
  std::vector<TensorBoardScalar> scalars{
      {"time/step", sample.iteration_ms}, {"local_rate", rate}, {"global_rate", rate * pushes}};
  if (!std::isnan(sample.value)) scalars.push_back({"worker-0", sample.value});
  if (!std::isnan(split.push_ms)) scalars.push_back({"time/worker_push", split.push_ms});
  if (!std::isnan(split.pull_ms)) scalars.push_back({"time/worker_fetch", split.pull_ms});
  return writer_.write(now_s, step_++, scalars);
}

Result<> AdderSteps::write_all(const AdderOutcome& outcome, double start_s) {
  const std::vector<AdderSample>& samples = outcome.samples.front();
  double now_s = start_s;
  for (size_t i = 0; i < samples.size(); ++i) {
    now_s += samples[i].iteration_ms * 1e-3;
    TRY(write(now_s, samples[i], i < outcome.apart.size() ? outcome.apart[i] : samples[i]));
  }
  return {};
}

}  // namespace pscloud

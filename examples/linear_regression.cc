// Linear regression with an updater of its own. With PSCLOUD_ROLE and PSCLOUD_SCHEDULER set it is one node of a job of
// many processes (docs/node-environment.md); alone it is a whole job, one server and one worker, in this process.
#include <fmt/core.h>

#include <array>
#include <random>

#include "pscloud/environment.h"
#include "pscloud/worker.h"

using namespace pscloud;

// Gradient descent with momentum: the server keeps a velocity beside each weight.
struct Momentum final : Updater {
  explicit Momentum(float r) : rate(r) {}
  size_t state_width(size_t width) const override { return width; }
  void update(std::span<float> weight, std::span<float> velocity, std::span<const float> gradient) const override {
    for (size_t i = 0; i < weight.size(); ++i) {
      velocity[i] = 0.9f * velocity[i] - rate * gradient[i];
      weight[i] += velocity[i];
    }
  }
  float rate;
};

constexpr std::array<float, 4> kTruth = {2, -1, 0.5f, 3};  // to be found: three slopes and an intercept

Result<> train(const NodeOptions& options) {
  const auto worker = TRY(Worker::join(options));
  const Table table = TRY(worker->create_table(
      {.name = "weights", .updater = {"momentum", {{"rate", 0.01f}}}, .consistency = Consistency::bsp()}));
  const std::array<Key, 4> keys = {0, 1, 2, 3};
  std::array<float, 4> weight{};
  std::mt19937 random(static_cast<unsigned>(worker->rank()));  // each worker has data of its own
  std::normal_distribution<float> normal;
  for (int step = 0; step < 200; ++step) {
    TRY(worker->pull(table, keys, weight).wait());
    std::array<float, 4> gradient{};
    for (int row = 0; row < 20; ++row) {
      const std::array<float, 4> x = {normal(random), normal(random), normal(random), 1};
      float error = 0.1f * normal(random);
      for (size_t i = 0; i < x.size(); ++i) error += (weight[i] - kTruth[i]) * x[i];
      for (size_t i = 0; i < x.size(); ++i) gradient[i] += error * x[i] / 20;
    }
    TRY(worker->push(table, keys, gradient).wait());
    TRY(worker->clock().wait());  // the step counts when all workers have made it
  }
  TRY(worker->pull(table, keys, weight).wait());
  if (worker->rank() == 0)
    fmt::print("found {:.2f} {:.2f} {:.2f} {:.2f}\n", weight[0], weight[1], weight[2], weight[3]);
  return worker->leave();
}

Result<> run() {
  UpdaterCatalog updaters;
  updaters.add("momentum", [](const UpdaterSpec& spec) -> Result<std::unique_ptr<Updater>> {
    if (spec.numbers.size() != 1) return invalid("momentum wants one number: rate");
    return std::make_unique<Momentum>(spec.numbers[0].second);
  });
  NodeOptions options;
  TRY(apply_environment(process_environment(), options));
  if (!options.scheduler.empty()) {
    return options.role == Role::kWorker ? train(options) : TRY(Node::start(options, updaters))->wait();
  }
  options.local = make_local_network();
  options.scheduler = "inproc:scheduler";
  options.role = Role::kScheduler;
  const auto scheduler = TRY(Node::start(options));
  options.role = Role::kServer;
  const auto server = TRY(Node::start(options, updaters));
  TRY(train(options));
  return scheduler->wait();
}

int main() {
  const Result<> done = run();
  if (!done) fmt::print(stderr, "linear_regression: {}\n", done.error().message);
  return done ? 0 : 1;
}

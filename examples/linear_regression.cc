// Linear regression with an updater of its own. Run it alone and it is a whole job in one process; with PSCLOUD_ROLE
// and PSCLOUD_SCHEDULER set it is one node of a job of many processes (docs/node-environment.md).
#include <fmt/core.h>

#include <array>
#include <random>
#include <thread>

#include "pscloud/environment.h"
#include "pscloud/worker.h"

using namespace pscloud;

// Gradient descent with momentum: the server keeps a velocity beside each weight.
class Momentum final : public Updater {
 public:
  explicit Momentum(float rate) : rate_(rate) {}
  size_t state_width(size_t width) const override { return width; }
  void update(std::span<float> weight, std::span<float> velocity, std::span<const float> gradient) const override {
    for (size_t i = 0; i < weight.size(); ++i) {
      velocity[i] = 0.9f * velocity[i] - rate_ * gradient[i];
      weight[i] += velocity[i];
    }
  }

 private:
  float rate_;
};

constexpr std::array<float, 4> kTruth = {2, -1, 0.5f, 3};  // what the workers shall find: three slopes and an intercept

Result<> train(const NodeOptions& options) {
  const auto worker = TRY(Worker::join(options));
  const Table table = TRY(worker->create_table(
      {.name = "weights", .updater = {"momentum", {{"rate", 0.01f}}}, .consistency = Consistency::bsp()}));
  const std::array<Key, 4> keys = {0, 1, 2, 3};
  std::array<float, 4> weight{}, gradient{};
  std::mt19937 random(static_cast<unsigned>(worker->rank()));  // each worker has data of its own
  std::normal_distribution<float> normal;
  for (int step = 0; step < 200; ++step) {
    TRY(worker->pull(table, keys, weight).wait());
    gradient = {};
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
    return std::make_unique<Momentum>(spec.numbers.at(0).second);
  });
  NodeOptions options;
  TRY(apply_environment(process_environment(), options));
  if (!options.scheduler.empty()) {
    if (options.role == Role::kWorker) return train(options);
    return TRY(Node::start(options, updaters))->wait();
  }
  // Nobody told us of a job: all of it here, one scheduler, one server and two workers on threads.
  options.local = make_local_network();
  options.scheduler = "inproc:scheduler";
  options.workers = 2;
  options.role = Role::kScheduler;
  const auto scheduler = TRY(Node::start(options));
  options.role = Role::kServer;
  const auto server = TRY(Node::start(options, updaters));
  std::jthread other([&] { (void)train(options); });
  TRY(train(options));
  TRY(server->wait());
  return scheduler->wait();
}

int main() {
  const Result<> done = run();
  if (!done) fmt::print(stderr, "linear_regression: {}\n", done.error().message);
  return done ? 0 : 1;
}

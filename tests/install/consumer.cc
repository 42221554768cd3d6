// All three roles in one process: what the smallest program of a user may look like.
#include <pscloud/node.h>
#include <pscloud/worker.h>

#include <cstdio>

using namespace pscloud;

static Result<> run() {
  NodeOptions options;
  options.local = make_local_network();
  options.scheduler = "inproc:scheduler";
  options.listen = "inproc:server";

  options.role = Role::kScheduler;
  auto scheduler = TRY(Node::start(options));
  options.role = Role::kServer;
  auto server = TRY(Node::start(options));
  options.role = Role::kWorker;
  auto worker = TRY(Worker::join(options));

  TableSpec spec;
  spec.name = "counts";
  const Table counts = TRY(worker->create_table(spec));
  const Key keys[] = {7, 18446744073709551615u};
  const float ones[] = {1, 2};
  float values[2] = {};
  TRY(worker->push(counts, keys, ones).wait());
  TRY(worker->pull(counts, keys, values).wait());
  std::printf("%g %g\n", values[0], values[1]);

  TRY(worker->leave());
  TRY(server->wait());
  return scheduler->wait();
}

int main() {
  const Result<> result = run();
  if (!result) std::fprintf(stderr, "consumer: %s\n", result.error().message.c_str());
  return result ? 0 : 1;
}

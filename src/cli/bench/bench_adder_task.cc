#include "cli/bench/bench_adder_task.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>

#include "base/log.h"
#include "cli/bench/bench_adder_gather.h"
#include "cli/bench/machine_limits.h"
#include "cli/bench/raw_socket.h"
#include "cli/bench/raw_socket_dial.h"
#include "cli/exit_code.h"
#include "cli/signals.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;

// The first server calls before it joins: when all have joined the call is there, or will never come.
constexpr milliseconds kCallTimeout{20000};
constexpr milliseconds kCallIsThere{1000};

uint64_t tensor_bytes(const AdderPlan& plan) { return plan.rows() * sizeof(float); }

// What one tensor costs at least, from the machine of the first worker.
class TaskLimits {
 public:
  // Listens from here on.
  TaskLimits(const NodeOptions& options, const AdderPlan& plan)
      : job_(options.job),
        listener_(listen_raw(options.listen)),
        target_(tensor_bytes(plan)),
        source_(tensor_bytes(plan)) {}

  // After all have joined. Tells what will not be measured.
  void find_peer(const SayLine& say) {
    auto socket = listener_ ? accept_raw(listener_->get(), job_, kCallIsThere) : Result<Fd>(listener_.error());
    listener_ = Fd();
    if (!socket) return say(kUnmeasuredWord + socket.error().message);
    peer_.emplace(*std::move(socket));
    exchange(Duplex::kPoll, say);  // warms up
  }

  void measure(const SayLine& say) {
    AdderLimits limits;
    limits.add_ms = measure_add_ms(target_.floats(), source_.floats(), 1);
    limits.add2_ms = measure_add_ms(target_.floats(), source_.floats(), 2);
    limits.copy_ms = measure_copy_ms(target_.floats(), source_.floats());
    limits.poll_ms = exchange(Duplex::kPoll, say);
    limits.threads_ms = exchange(Duplex::kThreads, say);
    say(encode_limits(limits));
  }

 private:
  double exchange(Duplex duplex, const SayLine& say) {
    if (!peer_) return std::numeric_limits<double>::quiet_NaN();
    const auto ms = peer_->exchange_ms(source_.bytes(), target_.bytes(), duplex);
    if (ms) return *ms;
    say(kUnmeasuredWord + ms.error().message);
    peer_.reset();
    return std::numeric_limits<double>::quiet_NaN();
  }

  const std::string job_;
  Result<Fd> listener_;
  LimitBuffer target_, source_;
  std::optional<RawSocketPeer> peer_;
};

}  // namespace

Result<> run_adder_worker_task(const NodeOptions& options, const AdderFlags& flags, const SayLine& say) {
  std::optional<TaskLimits> limits;
  if (options.rank == 0) limits.emplace(options, flags.plan);
  const auto worker = TRY(AdderWorker::join(options, flags.plan));
  say(kReadyWord + worker->transport());
  if (limits && worker->transport() != "shm") limits->find_peer(say);

  const bool apart = flags.plan.sync && worker->workers() == 1;
  TRY(worker->meet());
  for (int i = 0; i < flags.warmup; ++i) TRY(worker->iterate());
  if (apart && flags.warmup > 0) TRY(worker->iterate_apart());
  const int rounds = std::min(kAdderRounds, flags.iters);
  for (int round = 0, done = 0; round < rounds; ++round) {
    const int count = (flags.iters - done) / (rounds - round);
    done += count;
    TRY(worker->meet());  // who measures limits is alone
    for (int i = 0; i < count; ++i) say(encode_sample(TRY(worker->iterate())));
    for (int i = 0; apart && i < count; ++i) say(kApartWord + encode_sample(TRY(worker->iterate_apart())));
    TRY(worker->meet());
    for (int i = 0; limits && i < kLimitsEachRound; ++i) limits->measure(say);
  }
  say(TRY(worker->finish()) ? kValuesOk : kValuesWrong);
  return {};
}

int run_adder_server_task(const NodeOptions& options, const AdderPlan& plan, const std::string& first_worker) {
  std::optional<ChildProcess> peer;
  if (options.rank == 0 && !first_worker.empty()) {
    auto socket = dial_raw(first_worker, options.job, kCallTimeout);
    if (!socket) log_warning("the raw socket is not measured: {}", socket.error().message);
    if (socket) {
      auto child = ChildProcess::start({"bench", "raw-socket-peer", "--bytes-max", std::to_string(tensor_bytes(plan))},
                                       {}, *std::move(socket));
      if (!child) return fail(child.error());
      peer.emplace(*std::move(child));
    }
  }
  Signals signals;
  const auto node = Node::start(options);
  if (!node) return fail(node.error());
  signals.watch([&node](int) { (*node)->stop(); });
  const auto ended = (*node)->wait();
  signals.end_watch();
  if (signals.received() != 0) return kExitInterrupted;
  return ended ? kExitDone : fail(ended.error());
}

}  // namespace pscloud

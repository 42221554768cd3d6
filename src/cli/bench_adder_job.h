#pragma once

#include <string>
#include <vector>

#include "cli/bench_adder_worker.h"
#include "cli/local_cluster.h"

namespace pscloud {

// What the user asked for.
struct AdderFlags {
  LocalClusterSpec cluster;
  AdderPlan plan;
  int warmup = 3;
  int iters = 100;
  std::string tensorboard;  // folder
};

struct AdderOutcome {
  std::vector<std::vector<AdderSample>> samples;  // of each worker, in order, without those that warmed up
  std::vector<AdderSample> apart;                 // of a worker that is alone, in sync mode: push, then pull
  std::string transport;                          // what the workers got
  bool values_ok = true;
  double cpu_worker_s = 0;  // in the timed parts; NaN if threads cannot be told apart, then cpu_s has the sum
  double cpu_server_s = 0;
  double cpu_s = 0;

  // What the same bytes cost at least, measured between rounds, in milliseconds.
  std::vector<double> add_ms, add2_ms, copy_ms, socket_ms;

  std::vector<double> all(double AdderSample::*field) const;
};

// Runs the whole job on this machine: scheduler, servers, workers.
Result<AdderOutcome> run_adder_job(const AdderFlags& flags, const Cancelled& cancelled);

}  // namespace pscloud

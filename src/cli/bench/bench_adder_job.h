#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/bench/bench_adder_worker.h"
#include "cli/local/local_cluster.h"

namespace pscloud {

inline constexpr int kAdderRounds = 10;     // limits are measured after each
inline constexpr int kLimitsEachRound = 2;  // of every kind

// What the user asked for.
struct AdderFlags {
  LocalClusterSpec cluster;
  AdderPlan plan;
  int warmup = 3;
  int iters = 100;
  std::string tensorboard;  // folder
};

// Where it ran, if that was a cluster.
struct AdderPlace {
  std::string on;           // as the user said it
  std::string run;          // the folder of the run
  std::string tensorboard;  // that of its steps
  std::string unmeasured;   // why there is no limit of a raw socket; empty: there is, or none is wanted
  int hosts = 0;
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

  std::optional<AdderPlace> place;

  std::vector<double> all(double AdderSample::*field) const;
};

// Runs the whole job on this machine: scheduler, servers, workers.
Result<AdderOutcome> run_adder_job(const AdderFlags& flags, const Cancelled& cancelled);

}  // namespace pscloud

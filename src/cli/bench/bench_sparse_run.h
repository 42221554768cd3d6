#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/local/line_channel.h"
#include "cli/local/local_transport.h"
#include "pscloud/error.h"

namespace pscloud {

// What the user asked for. Counts are floating so that 1e7 can be written.
struct SparseFlags {
  LocalTransport transport;
  double keys = 1e7;
  uint32_t width = 1;
  double batch = 1e5;
  std::string distribution = "uniform";
  double zipf_s = 1.1;
  std::string updater = "ftrl";
  bool cached = false;
  int in_flight = 2;
  int server_threads = 1;
  int rounds = 50;
};

struct SparseOutcome {
  std::string transport;  // what the worker got
  uint64_t keys = 0;      // of all batches together
  double seconds = 0;
  double limit_seconds = 0;  // of a plain array on the same batches
  double fill_seconds = 0;
  std::vector<double> fill_ms;   // of each push of 100,000 new keys: the longest tells how the table grows
  double server_bytes = 0;       // that filling took
  std::vector<double> batch_ms;  // from request to answer
  double cpu_worker_s = 0;       // NaN if threads cannot be told apart
  double cpu_server_s = 0;
  bool values_ok = true;
};

Result<SparseOutcome> run_sparse(const SparseFlags& flags, const Cancelled& cancelled);

}  // namespace pscloud

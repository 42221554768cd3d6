#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "data/minibatch_reader.h"
#include "learn/bad_lines.h"
#include "learn/batch_examples.h"
#include "learn/batch_settings.h"
#include "learn/block_plan.h"
#include "learn/read_meter.h"
#include "pscloud/worker.h"

namespace pscloud {

// What batch training has in memory: the examples of this worker, and of all workers together how many they are.
struct LoadedExamples {
  BatchExamples mine;
  uint64_t examples = 0;
  uint64_t bad_lines = 0;
  std::map<uint16_t, GroupCount> groups;
};

// Reads the files of a config once, shared with all workers of the job. Borrows all that it is given. One thread.
class BatchLoader {
 public:
  BatchLoader(Worker& worker, FileStore& store, const BatchSettings& settings);

  // All workers say the same `pool`, and another one each time. One of them calls `show` now and then.
  Result<LoadedExamples> load(const std::string& pool, const ShowReading& show);

 private:
  Worker& worker_;
  FileStore& store_;
  const BatchSettings& settings_;
  const SystemClock clock_;
  MinibatchReader reader_;
  BadLineComplaints complaints_;
};

}  // namespace pscloud

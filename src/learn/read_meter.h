#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "pscloud/worker.h"

namespace pscloud {

// How far all workers together are with reading files.
struct ReadProgress {
  double seconds = 0;
  uint64_t examples = 0;
  uint64_t bytes = 0;      // read, as they are stored
  uint64_t bytes_all = 0;  // of all files
};

using ShowReading = std::function<void(const ReadProgress&)>;

// Adds up with the other workers of a job how far they are with files that they share, and has one of them tell it
// about once a second: one that reads, for the others may be waiting for it. Borrows the worker and the clock. One
// thread.
class ReadMeter {
 public:
  // All workers say the same name, and another one each time. Without `show` nothing is added up.
  ReadMeter(Worker& worker, std::string name, uint64_t bytes_all, ShowReading show, const Clock& clock);

  // Called after each few thousand examples: this worker has read so many more, and so many bytes in all.
  Result<> note(uint64_t examples, uint64_t stored_bytes);

 private:
  Worker& worker_;
  const std::string name_;
  const uint64_t bytes_all_;
  const ShowReading show_;
  const Clock& clock_;
  const Time start_;
  Time next_;
  uint64_t unreported_ = 0;  // examples
  uint64_t bytes_reported_ = 0;
  double told_ = 0;  // how often somebody has told, when this worker last looked,
  Time told_since_;  // and since when it has seen this number
};

}  // namespace pscloud

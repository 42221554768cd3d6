#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "pscloud/error.h"

namespace pscloud {

// A thing outside of this process: a process group on a host, a service, a submitted job, a folder.
struct LedgerEntry {
  uint64_t number = 0;
  std::string kind;                         // "process", "folder", "slurm_job", ...: a back end's own word
  std::map<std::string, std::string> what;  // enough to find it again and to be sure that it is the one
};

// What a run makes, on disk (fsync) before it is made, so that another process can find and undo it after this one was
// killed at any moment. JSON lines, only appended; a last line that was cut off is no line. What is learned later, and
// that it is gone, is written without waiting for the disk: it is only lost with the machine, and then asked again. One
// thread.
class Ledger {
 public:
  // Reads what is there already, and goes on with it: for the one process that holds the run's lock.
  static Result<Ledger> open(const std::string& path);
  // What may still be there, for others to look at: nothing is changed. No file: nothing.
  static Result<std::vector<LedgerEntry>> read(const std::string& path);

  // About to make this.
  Result<uint64_t> intend(const std::string& kind, std::map<std::string, std::string> what);
  // More is known of it now, such as its process id.
  Result<> learn(uint64_t number, const std::map<std::string, std::string>& more);
  // It is not there any more: that was checked.
  Result<> gone(uint64_t number);

  // What may still be there, in the order it was made.
  std::vector<LedgerEntry> remaining() const;

 private:
  Ledger(Fd file, std::map<uint64_t, LedgerEntry> entries, uint64_t next);
  Result<> append(const std::string& line);

  Fd file_;
  std::map<uint64_t, LedgerEntry> entries_;
  uint64_t next_ = 1;
};

}  // namespace pscloud

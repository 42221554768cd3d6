#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "net/transport.h"
#include "pscloud/node.h"

namespace pscloud {

class InprocMailbox;  // what a transport has still to handle; others put things in

// Who listens under which name in this process. Thread-safe.
class LocalNetwork {
 public:
  explicit LocalNetwork(LocalWork work) : work_(work) {}

  LocalWork work() const { return work_; }

  // Takes `name`, or a free one if it is empty or "0"; returns the address. kInvalid if the name is taken.
  Result<std::string> add(const std::string& name, std::shared_ptr<InprocMailbox> listener);
  void remove(const InprocMailbox& listener);

  // Null if nobody listens there.
  std::shared_ptr<InprocMailbox> find(const std::string& name) const;
  std::vector<std::shared_ptr<InprocMailbox>> listeners() const;

  // A number never given before, for lanes and names.
  uint64_t next_number() { return ++numbers_; }

 private:
  const LocalWork work_;
  std::atomic<uint64_t> numbers_{0};
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<InprocMailbox>> listeners_ GUARDED_BY(mutex_);
};

// Lanes between threads of one process, addresses "inproc:name". A frame moves by its pointer: its bytes are never
// copied. unsent_bytes() counts what the other side has not taken from its mailbox yet.
std::unique_ptr<LoopTransport> make_inproc_transport(std::shared_ptr<LocalNetwork> network, Clock& clock);

}  // namespace pscloud

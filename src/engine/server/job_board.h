#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "engine/server/work_pool.h"
#include "net/frame.h"

namespace pscloud {

// What the workers of a job share beside the tables: pools of work, and tallies, which are sums. It stands at the first
// owner; the requests about it come in that owner's streams, so each is done once. Items that come in several pools, as
// parts of data do in each pass, go to whom they went before, if that one wants work.
class JobBoard {
 public:
  // `name_of` names a worker for people; `workers` are those that there are, by their ranks.
  JobBoard(std::function<std::string(uint64_t)> name_of, std::function<std::vector<uint64_t>()> workers)
      : name_of_(std::move(name_of)), workers_(std::move(workers)) {}

  // Does what a frame about work or tallies asks. kInvalid if there is no room for it.
  Result<SharedBuffer> serve(const Frame& frame, Time now);
  // This worker is gone: others get its work.
  void forget(uint64_t session);

 private:
  Result<bool> offer(OfferWorkMessage message, Time now);
  std::vector<uint64_t> homes_of(const OfferWorkMessage& message) const;
  Result<TakenMessage> take(uint64_t session, const std::string& pool, Time now);
  Result<bool> finish(uint64_t session, const FinishWorkMessage& message, Time now);
  Result<bool> pause(const PauseWorkMessage& message);
  Result<TallyReplyMessage> tally(const TallyMessage& message);
  Result<> add(const std::string& name, const std::vector<Addend>& addends);
  Result<WorkPool*> find_pool(const std::string& name);
  Result<> check_room(const std::string& name, uint64_t bytes) const;

  const std::function<std::string(uint64_t)> name_of_;
  const std::function<std::vector<uint64_t>()> workers_;
  std::map<std::string, WorkPool> pools_;
  std::map<std::string, std::vector<double>> tallies_;
  std::unordered_map<uint64_t, uint64_t> homes_;  // of items, by the hash of their text: the worker that did it last
};

}  // namespace pscloud

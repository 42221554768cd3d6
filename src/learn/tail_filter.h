#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pscloud/worker.h"

namespace pscloud {

// Which features to leave out because they are seldom.
struct TailSettings {
  uint32_t frequency = 0;  // keys that have come so often or less; 0: none
  uint32_t hashes = 2;     // of the sketch that counts
};

// Counts the keys of all workers together, in a sketch at the servers: some that are seldom may be taken for common,
// but none the other way round. Borrows the worker.
class TailFilter {
 public:
  static constexpr uint32_t kFrequencyMax = 253;

  // The same in all workers. `cells`: bytes of all servers together.
  static Result<TailFilter> make(Worker& worker, const std::string& name, const TailSettings& settings, uint64_t cells,
                                 const Consistency& consistency = {});

  const Table& counts() const { return counts_; }

  // `columns` has of each feature the place of its key among `keys`: they come once more.
  Result<> add(std::span<const Key> keys, std::span<const uint32_t> columns);
  // Of each key: whether it has come often enough so far.
  Result<std::vector<uint8_t>> is_common(std::span<const Key> keys);
  // Both at once.
  Result<std::vector<uint8_t>> add_and_ask(std::span<const Key> keys, std::span<const uint32_t> columns);

 private:
  TailFilter(Worker& worker, Table counts, uint32_t frequency)
      : worker_(&worker), counts_(std::move(counts)), frequency_(frequency) {}
  std::vector<uint8_t> above(std::span<const float> counts) const;

  Worker* worker_;
  Table counts_;
  uint32_t frequency_;
};

}  // namespace pscloud

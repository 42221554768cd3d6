#include "engine/sim/oracle.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace pscloud {

std::string WorkOracle::given(uint64_t number, bool repeated) {
  if (repeated || given_.insert(number).second) return {};
  return fmt::format("item {} of the work was given twice as if for the first time", number);
}

std::string WorkOracle::counted(uint64_t number) {
  if (counted_.insert(number).second) return {};
  return fmt::format("item {} of the work counts twice", number);
}

std::string WorkOracle::ended(uint64_t items) const {
  for (uint64_t number = 0; number < items; ++number) {
    if (!finished_.contains(number)) return fmt::format("all work is done, but nobody has done item {}", number);
  }
  return {};
}

Oracle::Oracle(std::vector<TableSpec> tables, std::vector<Key> keys, uint32_t columns)
    : tables_(std::move(tables)),
      keys_(std::move(keys)),
      columns_(columns),
      cells_(tables_.size() * keys_.size() * columns),
      workers_(columns) {}

uint32_t Oracle::Cell::before(uint32_t clock) const {
  return static_cast<uint32_t>(std::ranges::lower_bound(clocks, clock) - clocks.begin());
}

void Oracle::begins(uint32_t column, uint32_t clock) {
  workers_[column].begun = true;
  workers_[column].clock = clock;
}

void Oracle::pushed(uint32_t table, size_t key, uint32_t column) {
  if (!workers_[column].past) cell(table, key, column).clocks.push_back(workers_[column].clock);
}

void Oracle::acknowledged(uint32_t table, size_t key, uint32_t column) {
  if (!workers_[column].past) ++cell(table, key, column).acknowledged;
}

void Oracle::ticked(uint32_t column) { ++workers_[column].clock; }

void Oracle::gave_up(uint32_t column) { workers_[column].whole = false; }

void Oracle::ends(uint32_t column, Life life) { workers_[column].life = life; }

void Oracle::begins_anew() {
  for (Cell& pushes : cells_) pushes = {};
  seen_.clear();
  work_ = {};
  for (Worker& worker : workers_) {
    if (!worker.begun) continue;
    worker.life = Life::kLost;
    worker.past = true;
  }
}

Oracle::Read Oracle::begin_read(uint32_t table, uint32_t column, std::vector<size_t> keys) const {
  Read read{table, column, workers_[column].clock, std::move(keys), {}};
  const Consistency& consistency = tables_[table].consistency;
  for (const size_t key : read.keys) {
    for (uint32_t other = 0; other < columns_; ++other) {
      const Cell& pushes = cell(table, key, other);
      uint32_t least = 0;
      if (!consistency.holds_clock()) {
        // One's own pushes before, whether answered or not, and everybody's that were answered.
        const bool own = other == column && workers_[column].whole;
        least = own ? static_cast<uint32_t>(pushes.clocks.size()) : pushes.acknowledged;
      }
      const auto seen = seen_.find({column, table, key, other});
      if (seen != seen_.end()) least = std::max(least, seen->second);
      read.least.push_back(least);
    }
  }
  return read;
}

std::string Oracle::describe(uint32_t table, size_t key, uint32_t column) const {
  const Cell& pushes = cell(table, key, column);
  return fmt::format("table {} key {:#x}: incarnation {} pushed {}, {} acknowledged", tables_[table].name,
                     this->key(table, key), column, pushes.clocks.size(), pushes.acknowledged);
}

std::string Oracle::judge(const Read& read, const std::vector<float>& values) {
  const Consistency& consistency = tables_[read.table].consistency;
  for (size_t i = 0; i < read.keys.size(); ++i) {
    for (uint32_t other = 0; other < columns_; ++other) {
      const float value = values[i * columns_ + other];
      const Cell& pushes = cell(read.table, read.keys[i], other);
      const auto fault = [&](const char* rule) {
        return fmt::format("{}: incarnation {} at clock {} read {} ({})", rule, read.column, read.clock, value,
                           describe(read.table, read.keys[i], other));
      };
      if (value < 0 || value != std::floor(value)) return fault("a count that is no count");
      const auto count = static_cast<uint32_t>(value);
      if (count > pushes.clocks.size()) return fault("a push counts twice");
      // What it gave up since it asked may not be there.
      const bool in_doubt = other == read.column && !workers_[other].whole;
      if (!in_doubt && count < read.least[i * columns_ + other])
        return fault("an acknowledged or seen push is missing");
      const bool whole = workers_[other].life != Life::kLost && workers_[other].whole;
      if (consistency.holds_clock()) {
        const uint32_t exact = pushes.before(read.clock);
        if (count > exact) return fault("a bsp read saw a push of its own clock");
        if (whole && count < exact) return fault("a bsp read missed a push of an earlier clock");
      }
      if (consistency.kind == Consistency::Kind::kSsp) {
        const uint32_t s = consistency.staleness;
        if (whole && read.clock > s && count < pushes.before(read.clock - s)) {
          return fault("a read is staler than its bound");
        }
        // Whoever made the last push seen was not more than s ahead of anybody.
        if (count > 0) {
          const uint32_t pushed_at = pushes.clocks[count - 1];
          for (const Worker& worker : workers_) {
            if (worker.begun && worker.life == Life::kRunning && worker.clock + s < pushed_at) {
              return fault("a push counts of a worker that ran too far ahead");
            }
          }
        }
      }
      seen_[{read.column, read.table, read.keys[i], other}] = count;
    }
  }
  return {};
}

std::string Oracle::judge_row(uint32_t table, size_t key, const std::vector<float>& row, bool at_end) const {
  for (uint32_t column = 0; column < columns_; ++column) {
    const Cell& pushes = cell(table, key, column);
    const float value = row[column];
    if (value > static_cast<float>(pushes.clocks.size())) {
      return fmt::format("a push counts twice: the row holds {} ({})", value, describe(table, key, column));
    }
    const bool whole = workers_[column].life == Life::kDone && workers_[column].whole;
    const size_t least = whole ? pushes.clocks.size() : pushes.acknowledged;
    if (at_end && value < static_cast<float>(least)) {
      return fmt::format("an acknowledged push is lost: the row holds {} ({})", value, describe(table, key, column));
    }
  }
  return {};
}

}  // namespace pscloud

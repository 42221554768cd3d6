#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "pscloud/table.h"
#include "pscloud/types.h"

namespace pscloud {

// Knows what became of the items of work that the workers share. Violations come back as text.
class WorkOracle {
 public:
  // A worker was told that it has this item.
  std::string given(uint64_t number, bool repeated);
  // It says that it is done with it.
  void finishes(uint64_t number) { finished_.insert(number); }
  // It was told that this counts.
  std::string counted(uint64_t number);
  // It was told that all `items` are done.
  std::string ended(uint64_t items) const;

 private:
  std::set<uint64_t> given_;  // for the first time
  std::set<uint64_t> finished_;
  std::set<uint64_t> counted_;
};

// Knows what every worker has pushed and been told, and so what a table may hold at any moment.
// Each incarnation of a worker has a column of its own and adds 1 to it, so that a row says exactly whose pushes
// it has seen: integers, no rounding, no doubt.
class Oracle {
 public:
  enum class Life : uint8_t {
    kRunning,
    kDone,  // said goodbye after all its requests were answered
    kLost,  // crashed, fenced or failed: what it had not been told of may or may not have happened
  };

  // `columns`: incarnations at most; `keys`: of every table.
  Oracle(std::vector<TableSpec> tables, std::vector<Key> keys, uint32_t columns);

  const std::vector<TableSpec>& tables() const { return tables_; }
  size_t keys() const { return keys_.size(); }
  // The key that stands at `index` in a table: dense ones have rows 0, 1, ... instead of the list.
  Key key(uint32_t table, size_t index) const {
    return tables_[table].kind == TableKind::kDense ? Key{index} : keys_[index];
  }
  uint32_t columns() const { return columns_; }

  // What column's worker did, in its own order.
  void begins(uint32_t column, uint32_t clock);
  void pushed(uint32_t table, size_t key, uint32_t column);        // handed to the engine
  void acknowledged(uint32_t table, size_t key, uint32_t column);  // the engine said ok, in order
  void ticked(uint32_t column);                                    // asked to end its clock
  void gave_up(uint32_t column);  // a request took too long: what it pushed may or may not count
  void ends(uint32_t column, Life life);
  // Scheduler and servers died together and new ones began the job anew: what was before is no part of it.
  void begins_anew();
  WorkOracle& work(uint32_t pool) { return work_[pool]; }
  Life life(uint32_t column) const { return workers_[column].life; }

  // A read is remembered when it is asked for and judged when it is answered. Violations come back as text.
  struct Read {
    uint32_t table;
    uint32_t column;
    uint32_t clock;
    std::vector<size_t> keys;
    std::vector<uint32_t> least;  // for each key and column: what it must see
  };
  Read begin_read(uint32_t table, uint32_t column, std::vector<size_t> keys) const;
  std::string judge(const Read& read, const std::vector<float>& values);

  // The value of one row at any time: nothing twice, nothing invented; at the end everything acknowledged.
  std::string judge_row(uint32_t table, size_t key, const std::vector<float>& row, bool at_end) const;

 private:
  struct Cell {
    std::vector<uint32_t> clocks;  // of each push, in order
    uint32_t acknowledged = 0;
    uint32_t before(uint32_t clock) const;  // pushes made before that clock
  };
  struct Worker {
    Life life = Life::kRunning;
    bool begun = false;
    bool past = false;  // it took part in a job that began anew without it
    bool whole = true;  // no push of it was given up
    uint32_t clock = 0;
  };
  const Cell& cell(uint32_t table, size_t key, uint32_t column) const {
    return cells_[(table * keys_.size() + key) * columns_ + column];
  }
  Cell& cell(uint32_t table, size_t key, uint32_t column) {
    return cells_[(table * keys_.size() + key) * columns_ + column];
  }
  std::string describe(uint32_t table, size_t key, uint32_t column) const;

  std::vector<TableSpec> tables_;
  std::vector<Key> keys_;
  uint32_t columns_;
  std::vector<Cell> cells_;
  std::vector<Worker> workers_;
  std::map<uint32_t, WorkOracle> work_;                                        // by pool
  std::map<std::tuple<uint32_t, uint32_t, size_t, uint32_t>, uint32_t> seen_;  // reader, table, key, column
};

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pscloud/error.h"
#include "pscloud/types.h"

namespace pscloud {

enum class TableKind : uint8_t {
  kDense = 0,   // rows 0..rows-1, all there from the start; each server owner holds one contiguous range
  kSparse = 1,  // any 64-bit key; a row is made by the first push of its key
  kSketch = 2,  // counts of any 64-bit keys in `rows` bytes in all: a push adds, a pull is never too low; at most 254
};

// When a request of a worker may be served. A worker's clock counts its calls of Worker::clock().
// - async: at once.
// - ssp(n): a worker at clock c waits until every worker has finished clock c-n-1. So a read sees every
//   update up to clock c-n-1, and nobody's updates count while it is more than n clocks ahead of the slowest.
// - bsp: as ssp(0), and updates of a clock take effect together when all workers have finished it, in the
//   order of ranks. So reads within a clock agree and a run can be repeated bit by bit.
// - sum: as bsp, but the updater sees the sum of a clock's pushes to a row, once. So the work of a clock may be shared
//   among any number of workers; with `assign` the table is the sums of the last clock.
struct Consistency {
  enum class Kind : uint8_t { kAsync = 0, kBsp = 1, kSsp = 2, kSum = 3 };
  Kind kind = Kind::kAsync;
  uint32_t staleness = 0;  // ssp only

  static Consistency async() { return {}; }
  static Consistency bsp() { return {Kind::kBsp, 0}; }
  static Consistency sum() { return {Kind::kSum, 0}; }
  static Consistency ssp(uint32_t staleness) { return {Kind::kSsp, staleness}; }
  // Pushes of a clock take effect together when it ends.
  bool holds_clock() const { return kind == Kind::kBsp || kind == Kind::kSum; }
  bool operator==(const Consistency&) const = default;
};

enum class FilterKind : uint8_t {
  kKeyCaching = 1,  // a key list seen before travels as a hash of the whole list
  kLz4 = 2,
  kZstd = 3,
  kFixedPoint = 4,  // values as integers of num_bytes; rounding is unbiased, zeros stay exactly zero
  kFloat16 = 5,
  kBfloat16 = 6,
  kDropZeros = 7,  // rows that are all zero cost one bit
  kNoise = 8,      // adds normal noise of mean and stddev
};

struct FilterSpec {
  FilterKind kind;
  uint8_t num_bytes = 2;  // kFixedPoint: 1, 2 or 3
  float mean = 0;         // kNoise
  float stddev = 0;       // kNoise
  bool once = false;      // kKeyCaching: a list comes twice, as for a pull and its push, and is forgotten then
  bool operator==(const FilterSpec&) const = default;
};

// An updater by name and numbers; no code travels. See updater.h for the names that are built in.
struct UpdaterSpec {
  std::string name = "add";
  std::vector<std::pair<std::string, float>> numbers = {};  // e.g. {{"learning_rate", 0.1}}
  bool operator==(const UpdaterSpec&) const = default;
};

// Values of a row before its first push: uniform in [low, high] from `seed` and the key; zero by default.
struct InitialValues {
  float low = 0;
  float high = 0;
  uint64_t seed = 0;
  bool operator==(const InitialValues&) const = default;
};

struct TableSpec {
  std::string name = {};  // 1..200 bytes
  TableKind kind = TableKind::kSparse;
  uint32_t width = 1;   // floats in a row, at most 65536
  uint64_t rows = 0;    // dense: all there are; sketch: cells
  uint32_t hashes = 0;  // sketch only: cells that count a key, 1 to 30; the least of them is its count
  UpdaterSpec updater = {};
  Consistency consistency = {};
  InitialValues initial = {};
  std::vector<FilterSpec> push_filters = {};  // in order: worker to server
  std::vector<FilterSpec> pull_filters = {};  // in order: server to worker
  uint64_t bytes_max = 0;                     // of this table on one server owner; 0 leaves only the server's own limit
  bool operator==(const TableSpec&) const = default;
};

// What to bring of the rows of a table when it is read from one end to the other.
enum class ScanKind : uint8_t {
  kCount = 0,    // nothing: only how many there are
  kNonzero = 1,  // the values of rows that are not all zero
  kAll = 2,      // the values of all rows
  kState = 3,    // of all rows the values, then what the updater keeps beside them
};

struct ScannedRows {
  uint64_t next = 0;     // where to go on; where it began: there are no more
  uint64_t nonzero = 0;  // rows among those looked at that are not all zero
  std::vector<Key> keys = {};
  std::vector<float> floats = {};  // of each key
  bool operator==(const ScannedRows&) const = default;
};

// kInvalid with what to change if no server could make this table.
Result<> validate(const TableSpec& spec);

// The id of the table with this name: the same everywhere, without asking anybody.
TableId table_id(std::string_view name);

}  // namespace pscloud

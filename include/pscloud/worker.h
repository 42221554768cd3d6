#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pscloud/error.h"
#include "pscloud/node.h"
#include "pscloud/table.h"
#include "pscloud/table_view.h"
#include "pscloud/work.h"

namespace pscloud {

// A request on its way. Cheap to copy; may be dropped without waiting.
class Ticket {
 public:
  struct State;
  explicit Ticket(std::shared_ptr<State> state) : state_(std::move(state)) {}

  // Waits for the end of the request, at most the worker's request_timeout_ms. kTimeout names whom it waited for.
  // After an error nobody writes to the buffers of the request any more.
  Result<> wait() const;
  bool done() const;

  // Runs `callback` once, on a thread of the worker kept for callbacks, or at once on this one if already done.
  void then(std::function<void(const Result<>&)> callback) const;

 private:
  std::shared_ptr<State> state_;
};

// A table as a worker knows it.
struct Table {
  TableId id = 0;
  TableSpec spec;
};

// Memory of a worker that servers on its machine read where it lies. Taken back when the last copy of `keeper` is gone.
struct LentFloats {
  std::span<float> values;  // zeros at first
  std::shared_ptr<void> keeper;
};

// A Worker reads and updates parameters that live on the servers.
// Thread-safe. Requests to one table made by one thread take effect on each server in the order they were made.
class Worker {
 public:
  // Joins the job at `options.scheduler`; returns when a rank has been given and the servers are there.
  // kTimeout after `options.join_timeout_ms` names who is missing.
  static Result<std::unique_ptr<Worker>> join(const NodeOptions& options);

  virtual ~Worker() = default;  // leaves as one that failed, unless leave() was called

  // Makes the table on every server, or finds it there with the same spec. kInvalid if another spec has its name.
  virtual Result<Table> create_table(const TableSpec& spec) = 0;
  // kNotFound if no worker has made it.
  virtual Result<Table> open_table(std::string_view name) = 0;

  // Memory for values that are pushed often. A push from it is not copied, where the server is on this machine.
  virtual Result<LentFloats> lend(size_t floats) = 0;

  // Adds `values` to the table by its updater. Does not wait: wait on the Ticket. Blocks only while more than
  // queue_bytes_max are under way. `keys` strictly increase; `values` has keys.size() * width floats.
  // Both may be reused at once; values in lent memory only when the ticket is done. After kTimeout what was sent of
  // them may still be read, or sent again: then leave such memory as it is until this worker has left.
  virtual Ticket push(const Table& table, std::span<const Key> keys, std::span<const float> values) = 0;

  // Fills `out` with the rows of `keys`; initial values for a key never pushed. `out` must outlive the request.
  virtual Ticket pull(const Table& table, std::span<const Key> keys, std::span<float> out) = 0;

  // A push, and a pull of the same keys that sees it (in a bsp table: that sees what any pull of this clock sees).
  virtual Ticket push_pull(const Table& table, std::span<const Key> keys, std::span<const float> values,
                           std::span<float> out) = 0;

  // The same for rows first_row, first_row+1, ... of a dense table, without naming each.
  virtual Ticket push_rows(const Table& table, uint64_t first_row, std::span<const float> values) = 0;
  virtual Ticket pull_rows(const Table& table, uint64_t first_row, std::span<float> out) = 0;
  virtual Ticket push_pull_rows(const Table& table, uint64_t first_row, std::span<const float> values,
                                std::span<float> out) = 0;

  // All rows of a dense table, where they lie: a pull without copies, where the server is on this machine. Waits as a
  // pull does, for this worker's own pushes and for the clock. A table with filters for pulls is copied.
  virtual Result<TableView> view(const Table& table) = 0;

  // Ends this worker's clock and begins the next. The ticket is done when the strictest table lets it go on.
  virtual Ticket clock() = 0;

  // Waits until every worker has come to its barrier of the same number.
  virtual Result<> barrier() = 0;

  // Each server thread holds one of these parts of every table. Rows of a part have numbers, from 0 on, that they keep:
  // this reads those from `first` on, some at a time. While nobody pushes it is the table as it is.
  virtual int parts() const = 0;
  virtual Result<ScannedRows> scan(const Table& table, int part, uint64_t first, ScanKind kind) = 0;

  // Puts rows in place of what is there, or makes them, in the order of `keys`, which differ but need not increase.
  // `floats` of each row are as a scan has brought them: values and state (kState), or values alone (kAll), to which
  // the updater then makes the state that lets training go on from them. At once, whatever the table's consistency:
  // for tables that nobody pushes to meanwhile.
  virtual Ticket set_rows(const Table& table, std::span<const Key> keys, std::span<const float> floats,
                          ScanKind kind) = 0;

  // Work that the workers share out among them, under a name. The first to offer it makes it; false: it was made of
  // other items than these.
  virtual Result<bool> offer_work(std::string_view pool, std::span<const std::string> items,
                                  SlowWork slow = SlowWork::kRepeat, WorkDeal deal = WorkDeal::kFirstCome) = 0;
  // An item of it; nothing when all are done. Waits while others have the last ones: one of those that dies or is very
  // slow loses its item to whom waits.
  virtual Result<std::optional<WorkItem>> take_work(std::string_view pool) = 0;
  // A pause: no item is given any more; when those under way are done take_work() gives the pause itself, to everybody,
  // until somebody resumes it. Numbers of pauses increase. False if it had no effect: another pause was first.
  virtual Result<bool> pause_work(std::string_view pool, uint64_t number) = 0;
  virtual Result<bool> resume_work(std::string_view pool, uint64_t number) = 0;
  // False if it does not count: another had done the item before. If it does, adds to the tally of the same name, and
  // the tally that it `forgets` is gone, all at once.
  virtual Result<bool> finish_work(std::string_view pool, uint64_t number, std::span<const Addend> addends = {},
                                   std::string_view forgets = {}) = 0;

  // Sums that all workers add to, under a name; zero at first. Adds, then returns `count` of them from `first` on.
  virtual Result<std::vector<double>> tally(std::string_view name, std::span<const Addend> addends, uint32_t first,
                                            uint32_t count) = 0;

  // Waits for all requests, then says goodbye: this worker is done. Nothing may be asked afterwards.
  virtual Result<> leave() = 0;

  // Says goodbye before the job is done, such as when its machine is about to go away: another may take its place and
  // its rank. What it has taken and not finished is given to others. Nothing may be asked afterwards.
  virtual Result<> give_up(std::string_view why) = 0;

  // How it reaches the servers: "shm", "tcp", "tls", "inproc", or two of them ("shm and tls").
  virtual std::string transport() const = 0;
  virtual int rank() const = 0;
  virtual int workers() const = 0;    // alive now
  virtual bool is_first() const = 0;  // of those alive it has the lowest rank
  virtual int servers() const = 0;
  virtual uint32_t current_clock() const = 0;  // not 0 at first if this worker came late
};

}  // namespace pscloud

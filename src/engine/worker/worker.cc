#include "pscloud/worker.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/log.h"
#include "engine/message.h"
#include "engine/node_loop.h"
#include "engine/node_status.h"
#include "engine/worker/budget.h"
#include "engine/worker/lent_buffers.h"
#include "engine/worker/request_check.h"
#include "engine/worker/slicer.h"
#include "engine/worker/ticket.h"
#include "engine/worker/view_request.h"
#include "engine/worker/worker_core.h"

namespace pscloud {

namespace {

// Errors of requests whose tickets were dropped that are shown; after these it is noise.
constexpr int kUnheardMax = 5;
// Between two questions for work while others have it all: a share of the time waited so far, so that no more than
// this share is lost.
constexpr int kTakePauseShare = 8;
constexpr Duration kTakePauseMin = std::chrono::milliseconds(1);
constexpr Duration kTakePauseMax = std::chrono::milliseconds(200);
// What a request costs beside its keys and values, here and in the queues to servers.
constexpr uint64_t kRequestBytes = 1024;
constexpr uint64_t kClockPartBytes = 512;  // the end of a clock has one for each of these
constexpr Duration kTakeComplaintEvery = std::chrono::seconds(5);

// Ends a ticket exactly once: by its outcome, or, if what would have brought that is dropped, by this being destroyed.
class Completion {
 public:
  Completion(std::shared_ptr<Ticket::State> ticket, std::function<void()> release,
             std::shared_ptr<std::atomic<int>> unheard)
      : ticket_(std::move(ticket)), release_(std::move(release)), unheard_(std::move(unheard)) {}
  ~Completion() { finish(unavailable("the worker has left the job")); }
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  void finish(const Result<>& outcome) {
    if (!ticket_) return;
    // Room for the next request first: a callback may make one.
    if (release_) release_();
    if (!outcome && ticket_.use_count() == 1 && unheard_->fetch_add(1) < kUnheardMax) {
      log_warning("nobody waits for this error: {}", outcome.error().message);
    }
    std::exchange(ticket_, nullptr)->finish(outcome);
  }

 private:
  std::shared_ptr<Ticket::State> ticket_;
  std::function<void()> release_;
  std::shared_ptr<std::atomic<int>> unheard_;
};

class WorkerImpl final : public Worker {
 public:
  explicit WorkerImpl(const NodeOptions& options)
      : options_(options), budget_(std::make_shared<Budget>(options.queue_bytes_max)) {}

  Result<> start() {
    loop_ = TRY(NodeLoop::make(options_));
    WorkerCore::Options core;
    core.member.job = options_.job;
    core.member.scheduler = options_.scheduler;
    core.member.timing = Timing::of(options_);
    core.member.self.session = loop_->random().next() | 1;
    core.member.self.role = Role::kWorker;
    core.shared_memory = options_.shared_memory;
    core.member.self.rank = options_.rank < 0 ? Member::kNoRank : static_cast<uint32_t>(options_.rank);
    core_ = std::make_unique<WorkerCore>(core, loop_->transport(), loop_->clock(), loop_->random(), metrics_);
    callback_thread_ = std::jthread([queue = callbacks_] { run_callbacks(*queue); });
    loop_->start(*core_, [] {});
    http_ = TRY(serve_status(
        options_, [this] { return loop_->ask<std::string>([this] { return core_->status_json(); }, ""); }, metrics_));
    if (http_ && options_.http == "auto") log_info("its status is at http://{}/status", http_->address());
    TRY(on_loop([this](WorkerCore::Done done) {
      core_->start([this, done = std::move(done)](const Result<>& ready) {
        if (ready) {
          rank_ = static_cast<int>(core_->member().self()->rank);
          owners_ = core_->owners();
          servers_ = core_->servers();
        }
        done(ready);
      });
    }));
    return {};
  }

  ~WorkerImpl() override {
    if (!left_ && core_) (void)say_goodbye(true, "it ended without saying that it was done");
    http_.reset();
    if (loop_) loop_->stop();
    core_.reset();  // ends the tickets that are left
    callbacks_->close();
  }

  Result<Table> create_table(const TableSpec& spec) override {
    TRY(validate(spec));
    TRY(to_all_owners(fmt::format("create table '{}'", spec.name), FrameType::kCreateTable, encode(spec), nullptr));
    return known({table_id(spec.name), spec});
  }

  Result<Table> open_table(std::string_view name) override {
    // Every owner must have it: one that has not would refuse the first push.
    auto specs = std::make_shared<std::vector<SharedBuffer>>();
    TRY(to_all_owners(fmt::format("open table '{}'", name), FrameType::kOpenTable,
                      encode(TextMessage{std::string(name)}),
                      [specs](const Part::Answer& answer) { specs->push_back(answer.raw); }));
    const TableSpec spec = TRY(decode<TableSpec>(specs->front()->span()));
    return known({table_id(spec.name), spec});
  }

  Result<LentFloats> lend(size_t floats) override {
    Result<Buffer> lent = unavailable("the worker has left the job");
    loop_->call([&] { lent = loop_->transport().lend(floats * sizeof(float)); });
    const auto buffer = std::make_shared<Buffer>(TRY(std::move(lent)));
    lent_.add(buffer);
    return LentFloats{{reinterpret_cast<float*>(buffer->data()), floats}, buffer};
  }

  Ticket push(const Table& table, std::span<const Key> keys, std::span<const float> values) override {
    return by_keys(FrameType::kPush, table, keys, values, {});
  }
  Ticket pull(const Table& table, std::span<const Key> keys, std::span<float> out) override {
    return by_keys(FrameType::kPull, table, keys, {}, out);
  }
  Ticket push_pull(const Table& table, std::span<const Key> keys, std::span<const float> values,
                   std::span<float> out) override {
    return by_keys(FrameType::kPushPull, table, keys, values, out);
  }
  Ticket push_rows(const Table& table, uint64_t first_row, std::span<const float> values) override {
    return by_rows(FrameType::kPush, table, first_row, values, {});
  }
  Ticket pull_rows(const Table& table, uint64_t first_row, std::span<float> out) override {
    return by_rows(FrameType::kPull, table, first_row, {}, out);
  }
  Ticket push_pull_rows(const Table& table, uint64_t first_row, std::span<const float> values,
                        std::span<float> out) override {
    return by_rows(FrameType::kPushPull, table, first_row, values, out);
  }

  Result<TableView> view(const Table& table) override {
    const auto spec = TRY(spec_of(table));
    if (spec->kind != TableKind::kDense)
      return invalid("table '{}' is sparse: only a dense one can be viewed", spec->name);
    std::vector<bool> in_place(owners_);
    loop_->look([&] {
      for (uint32_t i = 0; i < owners_; ++i) in_place[i] = spec->pull_filters.empty() && core_->channel(i).local();
    });
    auto view = view_by(table.id, spec, in_place);
    // An owner may have come back over the network.
    if (view || view.error().code != Code::kUnavailable) return view;
    return view_by(table.id, spec, std::vector<bool>(owners_, false));
  }

  Ticket clock() override {
    const uint64_t bytes = kRequestBytes + owners_ * kClockPartBytes;
    if (auto room = make_room(bytes); !room) return failed(room.error());
    auto [ticket, completion] = new_ticket([budget = budget_, bytes] { budget->give_back(bytes); });
    loop_->call([this, completion = completion] {
      core_->tick([completion](const Result<>& result) { completion->finish(result); });
    });
    return Ticket(ticket);
  }

  Result<> barrier() override {
    return on_loop([this](WorkerCore::Done done) { core_->barrier(std::move(done)); });
  }

  int parts() const override { return static_cast<int>(owners_); }

  Result<ScannedRows> scan(const Table& table, int part, uint64_t first, ScanKind kind) override {
    const auto spec = TRY(spec_of(table));
    if (part < 0 || part >= parts()) return invalid("part {} of table '{}': it has {}", part, spec->name, parts());
    const ScanMessage message{.first = first, .kind = kind};
    const SharedBuffer answer = TRY(to_owner(static_cast<uint32_t>(part), fmt::format("scan of table '{}'", spec->name),
                                             FrameType::kScan, encode(message), table.id));
    return decode<ScannedRows>(bytes_in(answer));
  }

  Ticket set_rows(const Table& table, std::span<const Key> keys, std::span<const float> floats,
                  ScanKind kind) override {
    auto known = spec_of(table);
    if (!known) return failed(known.error());
    const TableSpec& spec = **known;
    if (auto checked = check_set_request(spec, keys, floats.size(), kind); !checked) return failed(checked.error());
    return submit(FrameType::kSetRows, spec, keys.size_bytes() + floats.size_bytes(),
                  [&] { return slice_rows_to_set(table.id, spec, owners_, keys, floats, kind); });
  }

  Result<bool> offer_work(std::string_view pool, std::span<const std::string> items, SlowWork slow,
                          WorkDeal deal) override {
    const OfferWorkMessage message{
        .pool = std::string(pool), .items = {items.begin(), items.end()}, .slow = slow, .deal = deal};
    for (const std::string& item : items) {
      if (item.size() > kTextBytesMax)
        return invalid("an item of work has {} bytes, at most {}", item.size(), kTextBytesMax);
    }
    const SharedBuffer encoded = encode(message);
    if (encoded->size() > kPayloadBytesMax) {
      return invalid("{} items of work '{}' are {} bytes, at most {} fit", items.size(), pool, encoded->size(),
                     kPayloadBytesMax);
    }
    return TRY(ask_board<YesNoMessage>(FrameType::kOfferWork, pool, encoded)).yes;
  }

  Result<std::optional<WorkItem>> take_work(std::string_view pool) override {
    const Time begin = loop_->clock().now();
    Time complaint = begin + kTakeComplaintEvery;
    while (true) {
      auto taken = TRY(ask_board<TakenMessage>(FrameType::kTakeWork, pool, encode(TextMessage{std::string(pool)})));
      if (taken.state == TakenMessage::State::kGiven) return std::move(taken.item);
      if (taken.state == TakenMessage::State::kEnd) return std::nullopt;
      if (taken.state == TakenMessage::State::kPause) return WorkItem{taken.item.number, {}, false, true};
      const Time now = loop_->clock().now();
      if (now >= complaint) {
        log_info("work '{}': waits for {}", pool, taken.waiting_for);
        complaint = now + kTakeComplaintEvery;
      }
      const Duration pause = std::clamp((now - begin) / kTakePauseShare, kTakePauseMin, kTakePauseMax);
      MutexLock lock(mutex_);
      if (ended_.wait_for(mutex_, pause, [this] { return left_.load(); })) return unavailable("this worker has left");
    }
  }

  Result<bool> pause_work(std::string_view pool, uint64_t number) override { return pause(pool, number, true); }
  Result<bool> resume_work(std::string_view pool, uint64_t number) override { return pause(pool, number, false); }

  Result<bool> finish_work(std::string_view pool, uint64_t number, std::span<const Addend> addends,
                           std::string_view forgets) override {
    const FinishWorkMessage message{.pool = std::string(pool),
                                    .number = number,
                                    .addends = {addends.begin(), addends.end()},
                                    .forgets = std::string(forgets)};
    return TRY(ask_board<YesNoMessage>(FrameType::kFinishWork, pool, encode(message))).yes;
  }

  Result<std::vector<double>> tally(std::string_view name, std::span<const Addend> addends, uint32_t first,
                                    uint32_t count) override {
    const TallyMessage message{
        .tally = std::string(name), .addends = {addends.begin(), addends.end()}, .first = first, .count = count};
    return TRY(ask_board<TallyReplyMessage>(FrameType::kTally, name, encode(message))).sums;
  }

  Result<> leave() override { return end(false, ""); }
  Result<> give_up(std::string_view why) override { return end(true, std::string(why)); }

  std::string transport() const override {
    size_t local = 0;
    loop_->look([&] {
      for (uint32_t i = 0; i < owners_; ++i) local += core_->channel(i).local();
    });
    std::string name(loop_->transport().name());
    if (local == 0) return name;
    return local == owners_ ? "shm" : "shm and " + name;
  }
  int rank() const override { return rank_; }
  int servers() const override { return servers_; }
  int workers() const override { return static_cast<int>(live_ranks().size()); }
  bool is_first() const override {
    const std::vector<uint32_t> ranks = live_ranks();
    return !ranks.empty() && std::ranges::min(ranks) == static_cast<uint32_t>(rank_);
  }
  uint32_t current_clock() const override {
    return loop_->ask<uint32_t>([this] { return core_->clock(); }, 0);
  }

 private:
  std::vector<uint32_t> live_ranks() const {
    std::vector<uint32_t> ranks;
    loop_->look([&] {
      for (const NodeInfo& node : core_->member().view().nodes) {
        if (node.role == Role::kWorker && node.state == NodeState::kLive) ranks.push_back(node.rank);
      }
    });
    return ranks;
  }

  static void run_callbacks(CallbackQueue& queue) {
    std::function<void()> task;
    while (true) {
      if (queue.pop(task, std::chrono::seconds(1))) {
        task();
        task = nullptr;
      } else if (queue.closed()) {
        return;
      }
    }
  }

  std::pair<std::shared_ptr<Ticket::State>, std::shared_ptr<Completion>> new_ticket(std::function<void()> release) {
    auto state = std::make_shared<Ticket::State>(callbacks_, loop_);
    return {state, std::make_shared<Completion>(state, std::move(release), unheard_)};
  }
  Ticket failed(Error why) {
    auto [ticket, completion] = new_ticket(nullptr);
    completion->finish(std::move(why));
    return Ticket(ticket);
  }

  // Does something that ends by a callback of the core, and waits for it.
  Result<> on_loop(std::function<void(WorkerCore::Done)> work) {
    auto [ticket, completion] = new_ticket(nullptr);
    loop_->call([&work, completion = std::exchange(completion, nullptr)] {
      work([completion](const Result<>& result) { completion->finish(result); });
    });
    return Ticket(ticket).wait();
  }

  Result<> end(bool failure, const std::string& reason) {
    if (left_.exchange(true)) return {};
    ended_.notify_all();
    return say_goodbye(failure, reason);
  }

  Result<> say_goodbye(bool failure, const std::string& reason) {
    // Who gives up has an error to tell: that its requests under way fail now is no other.
    if (failure) *unheard_ = kUnheardMax;
    return on_loop([this, failure, reason](WorkerCore::Done done) { core_->leave(failure, reason, std::move(done)); });
  }

  Result<> to_all_owners(const std::string& what, FrameType type, const SharedBuffer& payload,
                         const std::function<void(const Part::Answer&)>& sink) {
    return on_loop([this, what, type, payload, sink](WorkerCore::Done done) {
      core_->submit_to_all(what, type, payload, sink, std::move(done));
    });
  }

  // What one owner answers.
  Result<SharedBuffer> to_owner(uint32_t owner, const std::string& what, FrameType type, const SharedBuffer& payload,
                                TableId table) {
    auto answer = std::make_shared<SharedBuffer>();
    TRY(on_loop([this, owner, what, type, payload, table, answer](WorkerCore::Done done) {
      std::vector<Slice> slices(1);
      slices[0].owner = owner;
      slices[0].part.type = type;
      slices[0].part.table = table;
      slices[0].part.raw = payload;
      slices[0].sink = [answer](const Part::Answer& got) { *answer = got.raw; };
      core_->submit(what, std::move(slices), std::move(done));
    }));
    return *answer;
  }
  static Bytes bytes_in(const SharedBuffer& buffer) { return buffer ? buffer->span() : Bytes{}; }

  template <class Answer>
  Result<Answer> ask_board(FrameType type, std::string_view name, const SharedBuffer& payload) {
    if (name.size() > kNameBytesMax) return invalid("a name of {} bytes; at most {}", name.size(), kNameBytesMax);
    const std::string what = fmt::format("{} '{}'", frame_type_name(type), name);
    return decode<Answer>(bytes_in(TRY(to_owner(0, what, type, payload, 0))));
  }

  Result<bool> pause(std::string_view pool, uint64_t number, bool begins) {
    const PauseWorkMessage message{.pool = std::string(pool), .number = number, .begins = begins};
    return TRY(ask_board<YesNoMessage>(FrameType::kPauseWork, pool, encode(message))).yes;
  }

  // Requests share one copy of each spec.
  Table known(Table table) {
    MutexLock lock(mutex_);
    specs_[table.id] = std::make_shared<const TableSpec>(table.spec);
    return table;
  }
  Result<std::shared_ptr<const TableSpec>> spec_of(const Table& table) {
    MutexLock lock(mutex_);
    if (const auto found = specs_.find(table.id); found != specs_.end()) return found->second;
    return not_found("this worker has no table '{}': create_table or open_table gives it one", table.spec.name);
  }

  Result<TableView> view_by(TableId table, const std::shared_ptr<const TableSpec>& spec,
                            const std::vector<bool>& in_place) {
    std::map<uint32_t, OwnerMemory> known;
    {
      MutexLock lock(mutex_);
      known = views_[table];
    }
    ViewRequest request(table, spec, in_place, known);
    TRY(submit(FrameType::kPull, *spec, 0, [&] { return request.slices(); }).wait());
    const TableView view = TRY(request.view());
    MutexLock lock(mutex_);
    views_[table] = request.known();
    return view;
  }

  Ticket by_keys(FrameType type, const Table& table, std::span<const Key> keys, std::span<const float> values,
                 std::span<float> out) {
    auto known = spec_of(table);
    if (!known) return failed(known.error());
    const auto spec = *std::move(known);
    if (auto checked = check_request_keys(*spec, keys); !checked) return failed(checked.error());
    if (auto checked = check_request_sizes(*spec, type, keys.size(), values.size(), out.size()); !checked)
      return failed(checked.error());
    return submit(type, *spec, keys.size_bytes() + values.size_bytes() + out.size_bytes(),
                  [&] { return slice_keys(type, table.id, spec, owners_, keys, values, out); });
  }

  Ticket by_rows(FrameType type, const Table& table, uint64_t first, std::span<const float> values,
                 std::span<float> out) {
    auto known = spec_of(table);
    if (!known) return failed(known.error());
    const auto spec = *std::move(known);
    if (spec->kind != TableKind::kDense) {
      return failed(invalid("table '{}' is sparse and has no numbered rows: use push and pull with keys", spec->name));
    }
    const size_t rows = std::max(values.size(), out.size()) / spec->width;
    if (auto checked = check_request_sizes(*spec, type, rows, values.size(), out.size()); !checked)
      return failed(checked.error());
    if (first > spec->rows || rows > spec->rows - first) {
      return failed(no_such_row(*spec, std::max(first, spec->rows)));
    }
    return submit(type, *spec, values.size_bytes() + out.size_bytes(),
                  [&] { return slice_rows(type, table.id, spec, owners_, first, rows, values, out); });
  }

  // Waits until so many bytes more may be under way.
  Result<> make_room(uint64_t bytes) {
    if (budget_->take(bytes, *loop_, std::chrono::milliseconds(options_.request_timeout_ms))) return {};
    const std::string waiting = loop_->ask<std::string>([this] { return core_->waiting_for(); }, "its own thread");
    return timed_out("no room for {} more bytes in {} ms: the requests under way wait for {}", bytes,
                     options_.request_timeout_ms, waiting);
  }

  template <class Slicing>
  Ticket submit(FrameType type, const TableSpec& spec, uint64_t floats_and_keys, Slicing slicing) {
    if (left_) return failed(invalid("this worker has left the job"));
    const uint64_t bytes = kRequestBytes + floats_and_keys;
    if (auto room = make_room(bytes); !room) return failed(room.error());
    auto [ticket, completion] = new_ticket([budget = budget_, bytes] { budget->give_back(bytes); });
    std::vector<Slice> slices = slicing();
    std::shared_ptr<WorkerCore::Request> request;
    loop_->look([&, completion = std::exchange(completion, nullptr)] {
      request = core_->open_request(
          fmt::format("{} on table '{}'", frame_type_name(type), spec.name), slices.size(),
          [completion](const Result<>& result) { completion->finish(result); }, type);
    });
    // One after the other, so that the servers have begun while we copy.
    for (Slice& slice : slices) {
      if (request) submit_slice(request, slice);
    }
    return Ticket(ticket);
  }

  void submit_slice(const std::shared_ptr<WorkerCore::Request>& request, Slice& slice) {
    if (const size_t bytes = slice.value_bytes(); bytes > 0) {
      if (SharedBuffer lent = slice.positions.empty() ? lent_.find(slice.source) : nullptr) {
        slice.part.values = Floats(slice.source, std::move(lent));
      } else {
        std::atomic<bool> room{false};
        Buffer buffer;
        loop_->look([&] { core_->channel(slice.owner).tell_when_to_copy(bytes, request->wanted, &room); });
        if (!loop_->drive_until(room)) return;  // the loop has ended
        loop_->look([&] { buffer = *request->wanted ? core_->channel(slice.owner).allocate(bytes) : Buffer(); });
        if (buffer.size() != bytes) return;  // the loop has ended since, or the request's time is over
        slice.load(std::move(buffer));
      }
    }
    loop_->call([&] { core_->submit(request, std::move(slice)); });
  }

  const NodeOptions options_;
  const std::shared_ptr<Budget> budget_;
  const std::shared_ptr<CallbackQueue> callbacks_ = std::make_shared<CallbackQueue>(UINT64_MAX);
  const std::shared_ptr<std::atomic<int>> unheard_ = std::make_shared<std::atomic<int>>(0);
  Metrics metrics_;
  std::shared_ptr<NodeLoop> loop_;
  std::unique_ptr<WorkerCore> core_;  // touched by the loop only
  std::unique_ptr<HttpServer> http_;
  std::jthread callback_thread_;
  std::atomic<bool> left_{false};

  // Set once, before join() returns.
  int rank_ = -1;
  int servers_ = 0;
  uint32_t owners_ = 0;

  LentBuffers lent_;
  Mutex mutex_;
  CondVar ended_;
  std::map<TableId, std::shared_ptr<const TableSpec>> specs_ GUARDED_BY(mutex_);
  std::map<TableId, std::map<uint32_t, OwnerMemory>> views_ GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<Worker>> Worker::join(const NodeOptions& options) {
  NodeOptions mine = options;
  mine.role = Role::kWorker;
  TRY(validate(mine));
  auto worker = std::make_unique<WorkerImpl>(mine);
  TRY(worker->start());
  return std::unique_ptr<Worker>(std::move(worker));
}

}  // namespace pscloud

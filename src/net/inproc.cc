#include "net/inproc.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/buffer_pool.h"
#include "base/check.h"

namespace pscloud {
namespace {

constexpr std::string_view kInprocScheme = "inproc:";
constexpr Duration kWaitMax = std::chrono::hours(1);  // a wait must end some time, and far times would overflow

// Bytes sent in one direction of a lane and not yet taken out at the other end.
using Unsent = std::shared_ptr<std::atomic<uint64_t>>;

// The two ends of a lane have numbers that differ in the last bit, so each knows the other's without asking.
LaneId other_end(LaneId lane) { return lane ^ 1; }

struct Lane {
  std::shared_ptr<InprocMailbox> peer;
  Unsent to_peer;
  Unsent from_peer;
  bool trusted = false;
};

// What stands in a mailbox. `lane` is always the receiver's end.
struct Connected {  // somebody connects to us: our end, and who it is
  LaneId lane;
  Lane ours;
  std::string address;
};
struct Accepted {
  LaneId lane;
};
struct Arrived {
  LaneId lane;
  Frame frame;
};
struct Closed {
  LaneId lane;
  Error why;
};
using Work = std::function<void()>;
struct Stop {};
using Event = std::variant<Arrived, Work, Connected, Accepted, Closed, Stop>;

}  // namespace

class InprocMailbox {
 public:
  // False, and nothing is kept, if its owner is gone.
  bool put(Event event) {
    bool first = false;
    {
      MutexLock lock(mutex_);
      if (closed_) return false;
      events_.push_back(std::move(event));
      first = events_.size() == 1;  // else the owner has been told already
    }
    if (first) changed_.notify_all();  // after it is let go: who wakes up would only wait for the mutex
    return true;
  }

  std::vector<Event> take() {
    MutexLock lock(mutex_);
    kicked_ = false;
    return std::exchange(events_, {});
  }
  bool empty() {
    MutexLock lock(mutex_);
    return events_.empty();
  }

  // Returns when there is something to take, or after a kick, or after `timeout`.
  void wait(Duration timeout, bool interruptible) {
    MutexLock lock(mutex_);
    changed_.wait_for(mutex_, timeout, [&]() REQUIRES(mutex_) {
      return !events_.empty() || kicked_ || (interruptible && interrupted_);
    });
    if (interruptible) interrupted_ = false;
  }
  void interrupt() {
    MutexLock lock(mutex_);
    interrupted_ = true;
    changed_.notify_all();
  }
  // Ends a wait that would last too long.
  void kick() {
    MutexLock lock(mutex_);
    kicked_ = true;
    changed_.notify_all();
  }

  void set_run(std::function<bool()> run) {
    MutexLock lock(run_mutex_);
    run_ = std::move(run);
  }
  // Lets its owner's `run` handle what is here.
  void run() {
    // Who finds another thread at it may go: that one looks once more when it has let go. Not for ever, though: others
    // may put in as fast as this thread takes out.
    for (int i = 0; i < kRunsMax && !empty(); ++i) {
      if (!run_mutex_.try_lock()) return;
      const bool ran = run_ && run_();
      run_mutex_.unlock();
      if (!ran) return;
    }
  }

  // Takes what is left; nothing can be put in any more.
  std::vector<Event> close() {
    MutexLock lock(mutex_);
    closed_ = true;
    return std::exchange(events_, {});
  }

 private:
  static constexpr int kRunsMax = 4;

  Mutex run_mutex_;  // held while it runs; taken before the owner's lock, never while mutex_ is held
  std::function<bool()> run_ GUARDED_BY(run_mutex_);

  Mutex mutex_;
  CondVar changed_;
  std::vector<Event> events_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
  bool kicked_ GUARDED_BY(mutex_) = false;
  bool interrupted_ GUARDED_BY(mutex_) = false;
};

namespace {

class InprocTransport final : public LoopTransport {
 public:
  InprocTransport(std::shared_ptr<LocalNetwork> network, Clock& clock)
      : network_(std::move(network)),
        clock_(clock),
        address_(fmt::format("{}#{}", kInprocScheme, network_->next_number())) {}
  ~InprocTransport() override { leave({}); }

  Result<std::string> listen(const std::string& address) override {
    if (!address.starts_with(kInprocScheme)) return invalid("\"{}\" is not an address like inproc:name", address);
    address_ = TRY(network_->add(address.substr(kInprocScheme.size()), mailbox_));
    return address_;
  }

  LaneId connect(const std::string& address, Role) override {
    const LaneId lane = network_->next_number() * 2;
    auto peer = address.starts_with(kInprocScheme) ? network_->find(address.substr(kInprocScheme.size())) : nullptr;
    const auto to_peer = std::make_shared<std::atomic<uint64_t>>(0);
    const auto from_peer = std::make_shared<std::atomic<uint64_t>>(0);
    lanes_.emplace(lane, Lane{peer, to_peer, from_peer});
    addresses_.emplace(lane, address);
    if (!peer || !peer->put(Connected{other_end(lane), {mailbox_, from_peer, to_peer}, address_})) {
      mailbox_->put(Closed{lane, unavailable("{}: nobody listens there", address)});
    }
    return lane;
  }

  void send(LaneId lane, Frame frame) override {
    CHECK(frame.payload_size() <= kPayloadBytesMax, "payload of {} bytes", frame.payload_size());
    const auto found = lanes_.find(lane);
    if (found == lanes_.end() || !found->second.peer) return;
    frame.header.payload_bytes = static_cast<uint32_t>(frame.payload_size());
    found->second.to_peer->fetch_add(frame.size(), std::memory_order_relaxed);
    found->second.peer->put(Arrived{other_end(lane), std::move(frame)});
  }

  uint64_t unsent_bytes(LaneId lane) const override {
    const auto found = lanes_.find(lane);
    return found == lanes_.end() ? 0 : found->second.to_peer->load(std::memory_order_relaxed);
  }

  Buffer allocate(LaneId, size_t size) override { return pool_.take(size); }

  void trust(LaneId lane) override {
    const auto found = lanes_.find(lane);
    if (found != lanes_.end()) found->second.trusted = true;
  }

  void close(LaneId lane) override { drop(lane, unavailable("{}: closed by the peer", address_)); }

  void wake_at(Time when) override {
    if (when < wake_) mailbox_->kick();
    wake_ = when;
  }

  void start(LaneHandler& handler) override { handler_ = &handler; }

  bool turn() override {
    if (ended_) return false;
    auto events = mailbox_->take();
    wake_if_due();
    for (auto event = events.begin(); event != events.end(); ++event) {
      if (std::holds_alternative<Stop>(*event)) {
        events.erase(events.begin(), event);
        leave(std::move(events));
        ended_ = true;
        return false;
      }
      std::visit([this](auto& what) { handle(what); }, *event);
      wake_if_due();  // here too: under heavy traffic the next turn may be far away
    }
    return true;
  }

  Duration idle_time() override {
    return mailbox_->empty() ? std::clamp(wake_ - clock_.now(), Duration(0), kWaitMax) : Duration(0);
  }
  bool has_news() const override { return !mailbox_->empty(); }
  void wait(Duration at_most, bool interruptible) override { mailbox_->wait(at_most, interruptible); }
  void interrupt() override { mailbox_->interrupt(); }

  void let_others_run(std::function<bool()> run) override { mailbox_->set_run(std::move(run)); }
  void run_others() override {
    if (network_->work() == LocalWork::kOwnThreads) return;
    for (const auto& mailbox : network_->listeners()) mailbox->run();
  }

  void post(std::function<void()> work) override {
    if (!stopped_.load()) mailbox_->put(std::move(work));
  }

  void stop() override {
    if (!stopped_.exchange(true)) mailbox_->put(Stop{});
  }

  std::string_view name() const override { return "inproc"; }

 private:
  void wake_if_due() {
    if (clock_.now() < wake_) return;
    wake_ = Time::never();
    handler_->on_wake();
  }

  void handle(Connected& who) {
    // Accepted goes first: what we send from on_open() must come after it.
    who.ours.peer->put(Accepted{other_end(who.lane)});
    lanes_.emplace(who.lane, std::move(who.ours));
    handler_->on_open(who.lane, {.address = who.address, .role = {}, .name = {}});
  }

  void handle(Accepted& which) {
    auto address = addresses_.extract(which.lane);
    if (!lanes_.contains(which.lane)) return;  // we have closed it meanwhile, and said so
    handler_->on_open(which.lane, {.address = address.mapped(), .role = {}, .name = {}});
  }

  void handle(Arrived& what) {
    const auto found = lanes_.find(what.lane);
    if (found == lanes_.end()) return;
    found->second.from_peer->fetch_sub(what.frame.size(), std::memory_order_relaxed);
    const uint32_t payload_max = found->second.trusted ? kPayloadBytesMax : kPayloadBytesStranger;
    if (what.frame.header.payload_bytes > payload_max) {
      const Error why = corrupt("{} frame with a payload of {} bytes, at most {} are taken",
                                frame_type_name(what.frame.header.type), what.frame.header.payload_bytes, payload_max);
      drop(what.lane, why);
      handler_->on_close(what.lane, why);
      return;
    }
    handler_->on_frame(what.lane, std::move(what.frame));
  }

  void handle(Closed& which) {
    addresses_.erase(which.lane);
    if (lanes_.erase(which.lane) > 0) handler_->on_close(which.lane, which.why);
  }

  void handle(Work& work) { work(); }
  void handle(Stop&) {}

  void drop(LaneId lane, const Error& why) {
    addresses_.erase(lane);
    const auto found = lanes_.extract(lane);
    if (!found.empty() && found.mapped().peer) found.mapped().peer->put(Closed{other_end(lane), why});
  }

  // Tells everybody that this end is gone; also those whose call still stands in the mailbox or in `unread`.
  void leave(std::vector<Event> unread) {
    network_->remove(*mailbox_);
    const Error why = unavailable("{}: closed by the peer", address_);
    auto rest = mailbox_->close();
    unread.insert(unread.end(), std::make_move_iterator(rest.begin()), std::make_move_iterator(rest.end()));
    for (auto& event : unread) {
      if (auto* who = std::get_if<Connected>(&event)) who->ours.peer->put(Closed{other_end(who->lane), why});
    }
    while (!lanes_.empty()) drop(lanes_.begin()->first, why);
  }

  const std::shared_ptr<LocalNetwork> network_;
  Clock& clock_;  // borrowed
  const std::shared_ptr<InprocMailbox> mailbox_ = std::make_shared<InprocMailbox>();
  std::atomic<bool> stopped_{false};

  // Touched in turns only, and before the first.
  BufferPool pool_;
  std::string address_;
  LaneHandler* handler_ = nullptr;
  bool ended_ = false;
  Time wake_ = Time::never();
  std::unordered_map<LaneId, Lane> lanes_;
  std::unordered_map<LaneId, std::string> addresses_;  // of lanes that are not accepted yet
};

}  // namespace

Result<std::string> LocalNetwork::add(const std::string& name, std::shared_ptr<InprocMailbox> listener) {
  MutexLock lock(mutex_);
  const std::string chosen = name.empty() || name == "0" ? fmt::format("#{}", next_number()) : name;
  if (!listeners_.emplace(chosen, std::move(listener)).second) {
    return invalid("{}{}: somebody listens there already; choose another name", kInprocScheme, chosen);
  }
  return fmt::format("{}{}", kInprocScheme, chosen);
}

void LocalNetwork::remove(const InprocMailbox& listener) {
  MutexLock lock(mutex_);
  std::erase_if(listeners_, [&](const auto& entry) { return entry.second.get() == &listener; });
}

std::shared_ptr<InprocMailbox> LocalNetwork::find(const std::string& name) const {
  MutexLock lock(mutex_);
  const auto found = listeners_.find(name);
  return found == listeners_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<InprocMailbox>> LocalNetwork::listeners() const {
  MutexLock lock(mutex_);
  std::vector<std::shared_ptr<InprocMailbox>> all;
  all.reserve(listeners_.size());
  for (const auto& [name, listener] : listeners_) all.push_back(listener);
  return all;
}

std::shared_ptr<LocalNetwork> make_local_network(LocalWork work) { return std::make_shared<LocalNetwork>(work); }

std::unique_ptr<LoopTransport> make_inproc_transport(std::shared_ptr<LocalNetwork> network, Clock& clock) {
  return std::make_unique<InprocTransport>(std::move(network), clock);
}

}  // namespace pscloud

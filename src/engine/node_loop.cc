#include "engine/node_loop.h"

#include "net/inproc.h"
#include "net/sigpipe.h"
#include "net/tcp.h"

namespace pscloud {

namespace {
// How long the loop's own thread leaves the work to callers after the last one did it.
constexpr Duration kStandBack = std::chrono::milliseconds(2);

// How long a thread looks for news before it sleeps: to be woken takes longer than this.
constexpr Duration kLook = std::chrono::microseconds(20);

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

// Lets the node look at itself after each event: has it finished?
class NodeLoop::AfterEach final : public LaneHandler {
 public:
  AfterEach(LaneHandler& handler, std::function<void()> after) : handler_(handler), after_(std::move(after)) {}

  void on_open(LaneId lane, const Peer& peer) override {
    handler_.on_open(lane, peer);
    after_();
  }
  void on_frame(LaneId lane, Frame frame) override {
    handler_.on_frame(lane, std::move(frame));
    after_();
  }
  std::span<std::byte> place_for(LaneId lane, const FrameHeader& header) override {
    return handler_.place_for(lane, header);
  }
  void on_close(LaneId lane, const Error& why) override {
    handler_.on_close(lane, why);
    after_();
  }
  void on_wake() override {
    handler_.on_wake();
    after_();
  }
  void after() { after_(); }

 private:
  LaneHandler& handler_;
  std::function<void()> after_;
};

NodeLoop::NodeLoop() : random_(Random::from_system()) {}

NodeLoop::~NodeLoop() { stop(); }

Result<std::unique_ptr<NodeLoop>> NodeLoop::make(const NodeOptions& options) {
  std::unique_ptr<NodeLoop> loop(new NodeLoop);
  if (options.scheduler.starts_with("inproc:")) {
    if (!options.local) return invalid("the address {} needs a LocalNetwork: set `local`", options.scheduler);
    loop->transport_ = make_inproc_transport(options.local, loop->clock_);
  } else {
    TcpOptions tcp;
    tcp.tls_dir = options.tls_dir;
    tcp.insecure = options.insecure;
    loop->transport_ = TRY(make_tcp_transport(tcp, loop->clock_));
  }
  return loop;
}

void NodeLoop::start(LaneHandler& handler, std::function<void()> after) {
  handler_ = std::make_unique<AfterEach>(handler, std::move(after));
  transport_->start(*handler_);
  transport_->let_others_run([this] { return turn_for_other(); });
  thread_ = std::jthread([this] { run(); });
}

void NodeLoop::run() {
  SigpipeBlock::for_thread();
  Spin spin;
  MutexLock lock(mutex_);
  while (true) {
    // Callers that ask often do the work themselves: to be woken for each answer too would only disturb them.
    if (driver_ != nullptr || (clock_.now() - last_driven_ < kStandBack && !left_over_.exchange(false))) {
      changed_.wait_for(mutex_, kStandBack, [] { return false; });
      if (!ended_) continue;
    }
    if (!turn()) return;
    rest(spin, nullptr);
  }
}

// Nothing is to be done: looks for news for a while, where that pays, and then sleeps until there are some. Meanwhile
// another thread may do the work and set `done`.
void NodeLoop::rest(Spin& spin, const std::atomic<bool>* done) {
  if (spin.on()) {
    mutex_.unlock();
    const bool came = look_a_while();
    mutex_.lock();
    spin.looked(came);
    if (came || (done != nullptr && *done)) return;
  }
  const Duration idle = transport_->idle_time();
  if (idle == Duration(0)) return;
  mutex_.unlock();
  const Time before = clock_.now();
  transport_->wait(idle, done != nullptr);
  const Duration slept = clock_.now() - before;
  mutex_.lock();
  spin.slept(slept);
}

void NodeLoop::Spin::looked(bool came) {
  misses_ = came ? 0 : misses_ + 1;
  if (misses_ >= kMissesMax) on_ = false;
}

void NodeLoop::Spin::slept(Duration time) {
  if (time >= 4 * kLook) return;
  on_ = true;
  misses_ = 0;
}

bool NodeLoop::turn() {
  if (!ended_ && !transport_->turn()) {
    ended_ = true;
    changed_.notify_all();
  }
  return !ended_;
}

void NodeLoop::help_others() {
  mutex_.unlock();
  transport_->run_others();
  mutex_.lock();
}

// On a thread of another node of this process.
bool NodeLoop::turn_for_other() {
  if (!mutex_.try_lock()) {
    left_over_ = true;
    return false;
  }
  turn();
  last_driven_ = clock_.now();
  mutex_.unlock();
  return true;
}

// Others wait already: only after idle_time() is it certain that they will be woken.
void NodeLoop::let_go() {
  if (!ended_ && transport_->idle_time() == Duration(0)) transport_->post([] {});
}

// What a caller has begun goes out at once. If that is not all, the loop's own thread is woken for the rest.
void NodeLoop::end_call() {
  handler_->after();
  turn();
  wake_others();
  let_go();
}

// What came may have been what the one that drives, or others behind it, wait for.
void NodeLoop::wake_others() {
  if (driver_ != nullptr && *driver_) transport_->interrupt();
  if (followers_ > 0) changed_.notify_all();
}

bool NodeLoop::look_a_while() {
  const Time end = clock_.now() + kLook;
  do {
    for (int i = 0; i < 4; ++i) {
      {
        MutexLock lock(mutex_);
        if (ended_ || transport_->has_news()) return true;
      }
      relax();
    }
    std::this_thread::yield();  // others may have something to do
  } while (clock_.now() < end);
  return false;
}

bool NodeLoop::drive_until(const std::atomic<bool>& done) {
  MutexLock lock(mutex_);
  while (driver_ != nullptr && !done && !ended_) {
    ++followers_;
    changed_.wait_for(mutex_, std::chrono::seconds(1),
                      [&]() REQUIRES(mutex_) { return driver_ == nullptr || done || ended_; });
    --followers_;
  }
  if (done || ended_) return done;
  driver_ = &done;
  while (!done && turn()) {
    if (followers_ > 0) changed_.notify_all();  // it may have been theirs
    if (done) break;
    help_others();
    if (!transport_->has_news()) rest(callers_spin_, &done);
  }
  driver_ = nullptr;
  last_driven_ = clock_.now();
  if (followers_ > 0) changed_.notify_all();
  let_go();
  return done;
}

void NodeLoop::post(std::function<void()> work) {
  transport_->post([this, work = std::move(work)] {
    work();
    if (handler_) handler_->after();
  });
}

void NodeLoop::stop() {
  if (transport_) transport_->let_others_run(nullptr);
  if (transport_) transport_->stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace pscloud

#include "pscloud/node.h"

#include <optional>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "engine/node_loop.h"
#include "engine/node_status.h"
#include "engine/scheduler/scheduler.h"
#include "engine/server/shard_owner.h"
#include "net/address.h"

namespace pscloud {

namespace {

// How long a node that is told to stop waits for the others to hear it.
constexpr auto kGoodbye = std::chrono::seconds(2);

// What has ended, between the loop threads and whoever waits.
class Outcome {
 public:
  explicit Outcome(size_t parts) : left_(parts) {}

  void part_ended(const Result<>& result) {
    MutexLock lock(mutex_);
    if (!result && result_) result_ = result;
    --left_;
    changed_.notify_all();
  }
  bool wait_for(Duration timeout) {
    MutexLock lock(mutex_);
    return changed_.wait_for(mutex_, timeout, [&]() REQUIRES(mutex_) { return left_ == 0; });
  }
  Result<> result() {
    MutexLock lock(mutex_);
    return result_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  size_t left_ GUARDED_BY(mutex_);
  Result<> result_ GUARDED_BY(mutex_);
};

class SchedulerNode final : public Node {
 public:
  static Result<std::unique_ptr<Node>> start(const NodeOptions& options) {
    std::unique_ptr<SchedulerNode> node(new SchedulerNode);
    node->loop_ = TRY(NodeLoop::make(options));
    node->address_ = TRY(node->loop_->transport().listen(options.scheduler));
    Scheduler::Options core;
    core.job = options.job;
    core.servers = options.servers;
    core.workers = options.workers;
    core.workers_min = options.workers_min;
    core.worker_death = options.worker_death;
    core.timing = Timing::of(options);
    node->core_ = std::make_unique<Scheduler>(core, node->loop_->transport(), node->loop_->clock());
    node->loop_->start(*node->core_, [self = node.get()] { self->look(); });
    node->started_ = true;
    node->loop_->post([self = node.get()] { self->core_->start(); });
    node->http_ = TRY(serve_status(
        options, [self = node.get()] { return self->loop_->ask<std::string>([self] { return self->status(); }, ""); },
        node->metrics_));
    return std::unique_ptr<Node>(std::move(node));
  }

  ~SchedulerNode() override {
    if (!started_) return;  // e.g. its port is taken: there is nobody to tell
    stop();
    http_.reset();
    loop_->stop();
  }

  std::string address() const override { return address_; }
  std::string http_address() const override { return http_ ? http_->address() : ""; }
  Result<> wait() override {
    while (!outcome_.wait_for(std::chrono::seconds(1))) {
    }
    return outcome_.result();
  }
  void stop() override {
    loop_->post([this] {
      if (!ended_) core_->fail_job("the scheduler was stopped");
    });
    if (outcome_.wait_for(kGoodbye)) return;
    loop_->post([this] { end(unavailable("the scheduler was stopped")); });
    outcome_.wait_for(kGoodbye);
  }

 private:
  SchedulerNode() = default;

  // On the loop.
  void look() {
    if (core_->finished()) end(core_->outcome());
  }
  std::string status() {
    heartbeat_age_.set(core_->longest_silence_ms());
    return core_->status_json();
  }
  void end(const Result<>& result) {
    if (std::exchange(ended_, true)) return;
    outcome_.part_ended(result);
  }

  bool started_ = false;
  std::string address_;
  Metrics metrics_;
  Gauge& heartbeat_age_ =
      metrics_.gauge("pscloud_heartbeat_age_ms", "since the last sign of life, of the node that is silent longest");
  std::unique_ptr<NodeLoop> loop_;
  std::unique_ptr<Scheduler> core_;  // touched by the loop only
  bool ended_ = false;               // so is this
  Outcome outcome_{1};
  std::unique_ptr<HttpServer> http_;
};

// A server process: its owners share nothing but the metrics.
class ServerNode final : public Node {
 public:
  static Result<std::unique_ptr<Node>> start(const NodeOptions& options, const UpdaterCatalog& updaters) {
    std::unique_ptr<ServerNode> node(new ServerNode(options.owners, updaters));
    const uint64_t process = Random::from_system().next() | 1;
    for (int i = 0; i < options.owners; ++i) TRY(node->add_owner(options, process, static_cast<uint32_t>(i)));
    for (auto& owner : node->owners_) {
      owner->loop->start(*owner->core, [self = node.get(), o = owner.get()] { self->look(*o); });
      owner->loop->post([o = owner.get()] { o->core->start(); });
    }
    node->started_ = true;
    node->http_ = TRY(serve_status(
        options, [self = node.get()] { return self->status(); }, node->metrics_));
    return std::unique_ptr<Node>(std::move(node));
  }

  ~ServerNode() override {
    if (!started_) return;
    stop();
    http_.reset();
    for (auto& owner : owners_) owner->loop->stop();
  }

  std::string address() const override { return owners_.front()->address; }
  std::string http_address() const override { return http_ ? http_->address() : ""; }
  Result<> wait() override {
    while (!outcome_.wait_for(std::chrono::seconds(1))) {
    }
    return outcome_.result();
  }
  void stop() override {
    for (auto& owner : owners_) {
      owner->loop->post([this, o = owner.get()] {
        o->stopping = true;
        o->core->leave("it was stopped");
        look(*o);
      });
    }
    if (outcome_.wait_for(kGoodbye)) return;
    for (auto& owner : owners_)
      owner->loop->post([this, o = owner.get()] { end(*o, unavailable("the server was stopped")); });
    outcome_.wait_for(kGoodbye);
  }

 private:
  struct Owner {
    std::unique_ptr<NodeLoop> loop;
    std::string address;
    std::unique_ptr<ShardOwner> core;  // touched by its loop only
    bool stopping = false;             // so are these
    bool ended = false;
  };

  ServerNode(int owners, const UpdaterCatalog& updaters) : updaters_(updaters), outcome_(static_cast<size_t>(owners)) {}

  // Only one can have the port that was given; where the others listen is told to everybody as well.
  static Result<std::string> listen_address(const NodeOptions& options, uint32_t index) {
    Address address = TRY(parse_address(options.listen));
    if (index > 0) address.port = 0;
    return address.text();
  }

  Result<> add_owner(const NodeOptions& options, uint64_t process, uint32_t index) {
    auto owner = std::make_unique<Owner>();
    owner->loop = TRY(NodeLoop::make(options));
    const bool local = options.scheduler.starts_with("inproc:");
    owner->address = TRY(owner->loop->transport().listen(local ? "inproc:0" : TRY(listen_address(options, index))));
    if (!options.advertise.empty() && !local) {
      owner->address = Address{options.advertise, TRY(parse_address(owner->address)).port}.text();
    }
    std::string local_address;
    if (options.shared_memory && !local) {
      auto listening = owner->loop->transport().listen("unix:");
      if (!listening) log_warning("no shared memory: {}", listening.error().message);
      local_address = listening ? *listening : "";
    }
    ShardOwner::Options core;
    core.member.job = options.job;
    core.member.scheduler = options.scheduler;
    core.member.timing = Timing::of(options);
    NodeInfo& self = core.member.self;
    self.session = owner->loop->random().next() | 1;
    self.process = process;
    self.role = Role::kServer;
    self.rank = options.rank < 0 ? Member::kNoRank : static_cast<uint32_t>(options.rank);
    self.owner = index;
    self.owners = static_cast<uint32_t>(options.owners);
    self.address = owner->address;
    self.local = local_address;
    core.memory_max = options.memory_max;
    owner->core = std::make_unique<ShardOwner>(core, updaters_, owner->loop->transport(), owner->loop->clock(),
                                               owner->loop->random(), metrics_);
    owners_.push_back(std::move(owner));
    return {};
  }

  // On the owner's loop.
  void look(Owner& owner) {
    if (!owner.core->finished()) return;
    end(owner, owner.stopping ? Result<>(unavailable("the server was stopped")) : owner.core->outcome());
  }
  void end(Owner& owner, const Result<>& result) {
    if (std::exchange(owner.ended, true)) return;
    outcome_.part_ended(result);
  }

  struct OwnerStatus {
    std::string json;
    std::vector<std::string> waiting_for;
    std::vector<HotKeys::HotKey> hot_keys;
  };

  std::string status() {
    OwnerStatus all;
    for (auto& owner : owners_) {
      const auto look = [o = owner.get()] {
        return OwnerStatus{o->core->status_json(), o->core->waiting_for(), o->core->hot_keys()};
      };
      const auto one = owner->loop->ask<OwnerStatus>(look, {});
      if (one.json.empty() || owners_.size() == 1) return one.json;
      all.json += (all.json.empty() ? "" : ",") + one.json;
      all.waiting_for.insert(all.waiting_for.end(), one.waiting_for.begin(), one.waiting_for.end());
      all.hot_keys.insert(all.hot_keys.end(), one.hot_keys.begin(), one.hot_keys.end());
    }
    JsonWriter json;
    json.begin_object().field("role", "server");
    write_names(json, "waiting_for", all.waiting_for);
    write_hot_keys(json, hottest(std::move(all.hot_keys), ShardOwner::kHotKeysTold));
    json.end_object();
    std::string text = json.text();
    text.back() = ',';
    return text + "\"owners\":[" + all.json + "]}";
  }

  const UpdaterCatalog updaters_;
  bool started_ = false;
  Metrics metrics_;
  std::vector<std::unique_ptr<Owner>> owners_;
  Outcome outcome_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace

Result<std::unique_ptr<Node>> Node::start(const NodeOptions& options, const UpdaterCatalog& updaters) {
  TRY(validate(options));
  switch (options.role) {
    case Role::kScheduler: return SchedulerNode::start(options);
    case Role::kServer: return ServerNode::start(options, updaters);
    case Role::kWorker: break;
  }
  return invalid("a worker is the program that trains: it joins by Worker::join");
}

}  // namespace pscloud

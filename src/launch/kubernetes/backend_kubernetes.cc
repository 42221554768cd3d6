#include "launch/kubernetes/backend_kubernetes.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "base/text.h"
#include "launch/kubernetes/kube_clean.h"
#include "launch/swarm/container_task.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;

// Between looks at the pods: servers are to hear soon of the last worker's end. Where a look takes long, because of
// many pods or a busy server, looks are a tenth of the time, but no further apart than the second.
constexpr milliseconds kLookAtPods{100};
constexpr milliseconds kLookAtLatest{300};
constexpr milliseconds kOpenLogAgain{1000};
constexpr milliseconds kApiAway{60000};
constexpr milliseconds kPodHeardLate{3000};  // a node looks once a second, and gives the time in whole seconds
constexpr milliseconds kRestOfLog{5000};     // for a stream to end after its pod
constexpr uint64_t kSecretBytesMax = 1000 * 1000;

// By its node, as a pod of a StatefulSet; those of jobs are not.
bool is_started_again(TaskRole role) { return role == TaskRole::kScheduler || role == TaskRole::kServer; }

// Reasons of a container that waits which waiting does not mend.
bool is_hopeless(std::string_view reason) {
  for (const std::string_view each : {"ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName",
                                      "CreateContainerConfigError", "CreateContainerError", "RunContainerError"}) {
    if (reason == each) return true;
  }
  return false;
}

const JsonValue& condition_of(const JsonValue& pod, std::string_view type) {
  static const JsonValue nothing;
  const auto& conditions = pod["status"]["conditions"].items();
  const auto found =
      std::ranges::find_if(conditions, [&](const JsonValue& each) { return each["type"].text() == type; });
  return found == conditions.end() ? nothing : *found;
}

// Which task a pod is; nothing if its labels do not tell.
std::optional<TaskId> task_of(const JsonValue& pod) {
  const JsonValue& metadata = pod["metadata"];
  const auto role = parse_role(metadata["labels"][kKubeRoleLabel].text());
  if (!role) return {};
  std::string index = metadata["annotations"]["batch.kubernetes.io/job-completion-index"].text();
  if (index.empty()) index = metadata["name"].text().substr(metadata["name"].text().rfind('-') + 1);
  TaskId id{*role, 0};
  if (!parse_number(index, 0, 1 << 20, id.index)) return {};
  return id;
}

}  // namespace

Result<std::unique_ptr<Backend>> make_kubernetes_backend(const Cluster& cluster, const std::string&) {
  return std::make_unique<KubernetesBackend>(TRY(read_kube_options(cluster)));
}

Result<> KubernetesBackend::connect() {
  if (api_) return {};
  api_ = std::make_unique<KubeApi>(TRY(find_kube(options_)), [this] { return find_kube(options_); });
  streams_ = std::make_unique<HttpStreams>(api_->access().http);
  return {};
}

Result<> KubernetesBackend::check(const Plan& plan) {
  TRY(check_containers(plan, "Kubernetes"));
  const auto files = TRY(container_files(plan, kSecretBytesMax));
  TRY(kube_objects(plan, options_, files, false));
  TRY(connect());
  // The least that we must be allowed to do; also whether anybody is there.
  TRY(api_->get(api_->path("/api/v1", "pods"), {{"labelSelector", fmt::format("{}={}", kKubeJobLabel, plan.job)}}));
  return {};
}

Result<std::string> KubernetesBackend::preview(const Plan& plan) {
  const auto files = TRY(container_files(plan, kSecretBytesMax));
  return kube_list(TRY(kube_objects(plan, options_, files, true)));
}

Result<> KubernetesBackend::start(const Plan& plan, Ledger& ledger) {
  TRY(connect());
  plan_ = &plan;
  const auto files = TRY(container_files(plan, kSecretBytesMax));
  const auto objects = TRY(kube_objects(plan, options_, files, false));
  const KubeAccess& access = api_->access();
  TRY(ledger.intend(kKubeEntry, {{"server", access.server}, {"namespace", access.name_space}, {"job", plan.job}}));
  for (const TaskAddress& task : kube_view(plan, options_).tasks) {
    pods_.emplace(task.id, Pod(task.id)).first->second.address = task.address;
  }
  for (const KubeObject& object : objects) TRY(api_->create(object));
  answered_at_ = std::chrono::steady_clock::now();
  return {};
}

Result<> KubernetesBackend::release(const ClusterView&) { return {}; }

// A controller would make a new pod for one that is removed: it goes first. Its other pods go with it; nobody stops one
// task of a role and leaves the others.
Result<> KubernetesBackend::stop(TaskId id, bool at_once) {
  const auto found = pods_.find(id);
  if (found == pods_.end() || found->second.over) return {};
  Pod& pod = found->second;
  if (!removed_.contains(id.role)) {
    const std::string path =
        is_started_again(id.role) ? api_->path("/apis/apps/v1", "statefulsets") : api_->path("/apis/batch/v1", "jobs");
    TRY(api_->remove(path + "/" + kube_name(*plan_, role_name(id.role)), kKubeWithWhatItOwns));
    removed_.insert(id.role);
  }
  pod.stopping = true;
  if (pod.name.empty()) return {};
  // With 0 the pod is off the books at once. A node that was told to stop it before goes on with the grace it was given
  // then: kubelets (1.34) do not take a shorter one meanwhile, so to wait for that would be in vain.
  const int grace = at_once ? 0 : (plan_->stop_grace_ms + 999) / 1000;
  return api_->remove(fmt::format("{}/{}", api_->path("/api/v1", "pods"), pod.name), kube_within(grace));
}

void KubernetesBackend::open_logs(Time now) {
  for (auto& [id, pod] : pods_) {
    if (pod.stream != 0 || pod.over || pod.log_ended || !pod.running || now < pod.open_again) continue;
    KubeApi::Query query{{"container", kKubeContainer}, {"timestamps", "true"}};
    if (!pod.last || pod.stopping) query.emplace_back("follow", "true");
    if (!pod.log.last().empty()) query.emplace_back("sinceTime", pod.log.last());
    pod.log.begin_stream();
    pod.stream =
        streams_->open(api_->request(fmt::format("{}/{}/log", api_->path("/api/v1", "pods"), pod.name), query));
  }
}

void KubernetesBackend::take_log(const HttpStreams::Event& event, Events& events) {
  const auto found = std::ranges::find_if(pods_, [&](const auto& each) { return each.second.stream == event.stream; });
  if (found == pods_.end()) return;
  Pod& pod = found->second;
  const size_t before = events.size();
  if (event.status == 200) pod.log.take(event.bytes, events);
  // A rest that is long takes its time: only one of which nothing new comes is given up. Words of refusal are nothing,
  // and neither is the log of a server that its node has started again.
  const bool is_rest = pod.stopping || !is_started_again(found->first.role);
  if (pod.last && is_rest && events.size() > before) {
    pod.finish_at = std::chrono::steady_clock::now() + kRestOfLog;
  }
  if (!event.ended) return;
  pod.stream = 0;
  // The server ends it with the container. Before that is known it may also have been cut off.
  pod.log_ended =
      (pod.last.has_value() || pod.stopping) && (event.status == 200 || event.status == 404) && event.error.empty();
  pod.open_again = std::chrono::steady_clock::now() + (pod.last ? milliseconds(100) : kOpenLogAgain);
}

void KubernetesBackend::finish_soon(TaskId id, Pod& pod, TaskEvent last) {
  last.task = id;
  const bool has_log = last.kind == TaskEvent::Kind::kExited;
  if (has_log && !pod.stopping && !is_started_again(id.role)) {
    // By now its log is in a file as a whole, and stays there: the rest is read at once. A stream that follows it looks
    // for the end once a second, and servers would be told to stop that much later.
    streams_->close(pod.stream);
    pod.stream = 0;
    pod.log_ended = false;
  }
  pod.last = std::move(last);
  pod.ended_seen = std::chrono::steady_clock::now();
  pod.finish_at = pod.ended_seen + (has_log ? kRestOfLog : milliseconds(0));
  pod.open_again = {};
  if (!pod.running) pod.log_ended = true;
}

void KubernetesBackend::finish_due(Time now, Events& events) {
  for (auto& [id, pod] : pods_) {
    if (pod.over || !pod.last || (!pod.log_ended && now < pod.finish_at)) continue;
    streams_->close(pod.stream);
    pod.stream = 0;
    pod.log.end(events);
    pod.over = true;
    pod.last->ended_ago = std::chrono::duration_cast<std::chrono::microseconds>(now - pod.ended_seen);
    events.push_back(*std::move(pod.last));
  }
}

void KubernetesBackend::take_trouble(TaskId id, Pod& pod, const std::string& trouble, Events& events) {
  if (trouble.empty() || trouble == pod.trouble) return;
  pod.trouble = trouble;
  events.push_back(
      {.kind = TaskEvent::Kind::kLine, .task = id, .text = "pscloud: it waits: " + trouble, .is_stderr = true});
}

void KubernetesBackend::take_container(TaskId id, Pod& pod, const JsonValue& status, Events& events) {
  const JsonValue& state = status["state"];
  // A server that has ended is started again by its node: what counts is how it ended first.
  const JsonValue& ended =
      state["terminated"].is(JsonValue::Kind::kObject) ? state["terminated"] : status["lastState"]["terminated"];
  const bool has_ended = ended.is(JsonValue::Kind::kObject);
  if (!pod.running && (has_ended || state["running"].is(JsonValue::Kind::kObject))) {
    pod.running = true;
    events.push_back({.kind = TaskEvent::Kind::kArrived, .task = id, .host = pod.node, .address = pod.address});
    events.push_back({.kind = TaskEvent::Kind::kRunning, .task = id, .host = pod.node});
  }
  if (has_ended) {
    const auto code = static_cast<int>(ended["exitCode"].integer(1));
    const std::string& reason = ended["reason"].text();
    if (!reason.empty() && reason != "Error" && reason != "Completed") {
      events.push_back({.kind = TaskEvent::Kind::kLine, .task = id, .text = "pscloud: " + reason, .is_stderr = true});
    }
    const int64_t at = pod.stopping ? 0 : parse_unix_us(ended["finishedAt"].text());
    return finish_soon(
        id, pod,
        {.kind = TaskEvent::Kind::kExited, .task = id, .code = code, .ended_unix_us = at, .heard_late = kPodHeardLate});
  }
  const JsonValue& waiting = state["waiting"];
  const std::string trouble = fmt::format("{}: {}", waiting["reason"].text(), waiting["message"].text());
  if (is_hopeless(waiting["reason"].text())) {
    const std::string why =
        waiting["reason"].text().find("Image") == std::string::npos
            ? trouble
            : fmt::format("{} cannot get the image {}: {}", pod.node, plan_->find(id)->image, trouble);
    return finish_soon(id, pod, {.kind = TaskEvent::Kind::kLost, .task = id, .text = why});
  }
  if (!waiting["message"].text().empty()) take_trouble(id, pod, trouble, events);
}

void KubernetesBackend::take_pod(TaskId id, Pod& pod, const JsonValue& state, Events& events) {
  if (pod.node.empty() && !state["spec"]["nodeName"].text().empty()) {
    pod.node = state["spec"]["nodeName"].text();
    events.push_back({.kind = TaskEvent::Kind::kPlaced, .task = id, .host = pod.node});
  }
  const JsonValue& scheduled = condition_of(state, "PodScheduled");
  if (scheduled["status"].text() == "False") take_trouble(id, pod, scheduled["message"].text(), events);
  const auto& statuses = state["status"]["containerStatuses"].items();
  if (!statuses.empty()) take_container(id, pod, statuses.front(), events);
  if (pod.last) return;
  if (state["status"]["phase"].text() == "Failed") {
    // Without a container's end: evicted, or refused by the node.
    const std::string why = fmt::format("{}: {}", state["status"]["reason"].text(), state["status"]["message"].text());
    return finish_soon(id, pod, {.kind = TaskEvent::Kind::kLost, .task = id, .text = why});
  }
  // Nothing asks our containers whether they are ready, so only the loss of their node makes them not so; the cluster
  // waits five minutes more before it gives such a pod up.
  const bool runs = !statuses.empty() && statuses.front()["state"]["running"].is(JsonValue::Kind::kObject);
  if (pod.running && runs && statuses.front()["ready"].truth() &&
      condition_of(state, "Ready")["status"].text() == "False") {
    finish_soon(id, pod,
                {.kind = TaskEvent::Kind::kLost, .task = id, .text = fmt::format("{} does not answer", pod.node)});
  }
}

Result<> KubernetesBackend::look_at_pods(Events& events) {
  const JsonValue list = TRY(
      api_->get(api_->path("/api/v1", "pods"), {{"labelSelector", fmt::format("{}={}", kKubeJobLabel, plan_->job)}}));
  std::set<TaskId> seen;
  for (const JsonValue& state : list["items"].items()) {
    const auto id = task_of(state);
    const auto found = id ? pods_.find(*id) : pods_.end();
    if (found == pods_.end()) continue;
    Pod& pod = found->second;
    if (pod.name.empty()) pod.name = state["metadata"]["name"].text();
    if (pod.name != state["metadata"]["name"].text()) continue;
    seen.insert(*id);
    if (!pod.over && !pod.last) take_pod(*id, pod, state, events);
  }
  for (auto& [id, pod] : pods_) {
    if (pod.over || pod.last || seen.contains(id)) continue;
    if (pod.stopping) {
      finish_soon(id, pod, {.kind = TaskEvent::Kind::kExited, .task = id, .signal = SIGTERM});
    } else if (!pod.name.empty()) {
      finish_soon(id, pod, {.kind = TaskEvent::Kind::kLost, .task = id, .text = "somebody else has removed its pod"});
    }
  }
  return {};
}

Result<std::vector<TaskEvent>> KubernetesBackend::wait(Time deadline, int wake_fd) {
  Events events;
  while (true) {
    Time now = std::chrono::steady_clock::now();
    if (now >= look_at_pods_) {
      // An API server may be away for a while; what runs goes on meanwhile.
      if (auto looked = look_at_pods(events); looked) {
        answered_at_ = now;
      } else if (now - answered_at_ >= kApiAway) {
        return looked.error();
      }
      const Time looked_at = std::chrono::steady_clock::now();
      look_at_pods_ = looked_at + std::clamp<Time::duration>((looked_at - now) * 9, kLookAtPods, kLookAtLatest);
    }
    now = std::chrono::steady_clock::now();
    finish_due(now, events);
    open_logs(now);
    const Time until = events.empty() ? std::min(deadline, look_at_pods_) : now;
    const auto arrived = streams_->wait(until, wake_fd);
    for (const HttpStreams::Event& event : arrived) take_log(event, events);
    const Time then = std::chrono::steady_clock::now();
    if (!events.empty() || then >= deadline || (arrived.empty() && then < until)) return events;
  }
}

Result<std::vector<std::string>> KubernetesBackend::clean(const Plan& plan, Ledger& ledger) {
  streams_.reset();
  api_.reset();
  return clean_kubernetes(options_, plan, ledger);
}

Result<std::vector<std::string>> KubernetesBackend::shell(const Plan& plan, TaskId id) {
  if (!options_.server.empty()) {
    return invalid(
        "the shell is opened by kubectl, which does not know how to reach {}: give `kubectl exec` a kubeconfig, or run "
        "the job by one (--on kubernetes:kubeconfig=FILE)",
        options_.server);
  }
  TRY(connect());
  const JsonValue list =
      TRY(api_->get(api_->path("/api/v1", "pods"), {{"labelSelector", fmt::format("{}={}", kKubeJobLabel, plan.job)}}));
  for (const JsonValue& pod : list["items"].items()) {
    if (task_of(pod) != id || pod["status"]["phase"].text() != "Running") continue;
    std::vector<std::string> command{
        "kubectl", "--namespace", api_->access().name_space, "exec", "-it", pod["metadata"]["name"].text(), "--", "sh"};
    if (!options_.kubeconfig.empty()) command.insert(command.begin() + 1, "--kubeconfig=" + options_.kubeconfig);
    if (!options_.context.empty()) command.insert(command.begin() + 1, "--context=" + options_.context);
    return command;
  }
  return not_found("{} does not run", id.text());
}

}  // namespace pscloud

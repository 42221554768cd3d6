#include "launch/kubernetes/kube_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "base/base64.h"
#include "base/json.h"
#include "base/text.h"

namespace pscloud {
namespace {

constexpr size_t kRunPartMax = 24;  // so that the name of a pod stays below 63 characters
constexpr const char* kIndexVariable = "PSCLOUD_POD_INDEX";
constexpr int kOwnerMode = 0400;

bool comes_to_an_end(TaskRole role) { return role != TaskRole::kScheduler && role != TaskRole::kServer; }

// Kubernetes takes $(NAME) for a variable and $$ for a $, in variables and in arguments.
std::string kube_literal(std::string_view text) {
  std::string literal;
  for (const char c : text) literal.append(c == '$' ? 2 : 1, c);
  return literal;
}

// Runs of digits, and what is between them.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin < text.size();) {
    const bool digit = std::isdigit(static_cast<unsigned char>(text[begin])) != 0;
    size_t end = begin + 1;
    while (end < text.size() && (std::isdigit(static_cast<unsigned char>(text[end])) != 0) == digit) ++end;
    parts.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return parts;
}

// The tasks of one role.
struct RoleTasks {
  TaskRole role;
  std::vector<const PlannedTask*> planned;
  std::vector<ContainerTask> containers;

  const ContainerTask& first() const { return containers.front(); }
  std::string name(const Plan& plan) const { return kube_name(plan, role_name(role)); }
};

class ManifestMaker {
 public:
  ManifestMaker(const Plan& plan, const KubeOptions& options, const std::vector<ContainerTask::File>& files, bool hide)
      : plan_(plan), options_(options), files_(files), hide_(hide) {}

  Result<std::vector<KubeObject>> make() {
    const ClusterView view = kube_view(plan_, options_);
    std::map<TaskRole, RoleTasks> roles;
    for (const PlannedTask& task : plan_.tasks) {
      RoleTasks& role = roles[task.spec.id.role];
      role.role = task.spec.id.role;
      role.planned.push_back(&task);
      role.containers.push_back(container_task(plan_, view, task));
    }
    objects_.push_back(service());
    if (!files_.empty()) objects_.push_back(secret(kube_name(plan_, "files"), files_));
    for (const auto& [role, tasks] : roles) {
      if (!tasks.first().secrets.empty()) objects_.push_back(secret(tasks.name(plan_), tasks.first().secrets));
    }
    for (const auto& [role, tasks] : roles) objects_.push_back(TRY(controller(tasks)));
    return std::move(objects_);
  }

 private:
  void begin(JsonWriter& json, const char* api, const char* kind, const std::string& name, std::string_view role = {}) {
    json.begin_object().field("apiVersion", api).field("kind", kind).key("metadata");
    json.begin_object().field("name", name);
    labels(json, role);
    json.end_object();
  }

  void labels(JsonWriter& json, std::string_view role) {
    json.key("labels").begin_object().field("app.kubernetes.io/managed-by", "pscloud");
    json.field(kKubeJobLabel, plan_.job).field("pscloud.run", plan_.run);
    if (!role.empty()) json.field(kKubeRoleLabel, role);
    json.end_object();
  }

  KubeObject service() {
    JsonWriter json;
    begin(json, "v1", "Service", kube_name(plan_));
    json.key("spec").begin_object().field("clusterIP", "None").field("publishNotReadyAddresses", true);
    json.key("selector").begin_object().field(kKubeJobLabel, plan_.job).end_object();
    json.key("ports").begin_array().begin_object().field("name", "task").field("port", int{options_.port});
    json.end_object().end_array().end_object().end_object();
    return {"services", "/api/v1", json.text()};
  }

  KubeObject secret(const std::string& name, const std::vector<ContainerTask::File>& files) {
    JsonWriter json;
    begin(json, "v1", "Secret", name);
    json.field("type", "Opaque").key("data").begin_object();
    for (size_t i = 0; i < files.size(); ++i) json.field(key(i), hide_ ? "" : base64(files[i].content));
    json.end_object().end_object();
    return {"secrets", "/api/v1", json.text()};
  }

  // Keys of a Secret may not have '/' in them.
  static std::string key(size_t i) { return fmt::format("file{}", i); }

  Result<KubeObject> controller(const RoleTasks& tasks) {
    const std::string name = tasks.name(plan_);
    const std::string role = role_name(tasks.role);
    const bool ends = comes_to_an_end(tasks.role);
    const auto count = static_cast<int>(tasks.containers.size());
    JsonWriter json;
    begin(json, ends ? "batch/v1" : "apps/v1", ends ? "Job" : "StatefulSet", name, role);
    json.key("spec").begin_object();
    if (ends) {
      // A task that failed is not run again: the supervisor decides what follows.
      json.field("completionMode", "Indexed").field("completions", count).field("parallelism", count);
      json.field("backoffLimitPerIndex", 0).field("podReplacementPolicy", "Failed");
    } else {
      json.field("serviceName", kube_name(plan_)).field("replicas", count).field("podManagementPolicy", "Parallel");
      json.key("selector").begin_object().key("matchLabels").begin_object().field(kKubeJobLabel, plan_.job);
      json.field(kKubeRoleLabel, role).end_object().end_object();
    }
    json.key("template").begin_object().key("metadata").begin_object();
    labels(json, role);
    json.end_object().key("spec");
    TRY(pod(json, tasks, ends));
    json.end_object().end_object().end_object();
    if (ends) return KubeObject{"jobs", "/apis/batch/v1", json.text()};
    return KubeObject{"statefulsets", "/apis/apps/v1", json.text()};
  }

  Result<> pod(JsonWriter& json, const RoleTasks& tasks, bool ends) {
    json.begin_object().field("restartPolicy", ends ? "Never" : "Always").field("subdomain", kube_name(plan_));
    json.field("automountServiceAccountToken", false).field("enableServiceLinks", false);
    json.field("terminationGracePeriodSeconds", (plan_.stop_grace_ms + 999) / 1000);
    security(json);
    const ContainerTask& first = tasks.first();
    json.key("containers").begin_array().begin_object().field("name", kKubeContainer).field("image", first.image);
    json.field("imagePullPolicy", options_.pull);
    if (!files_.empty()) json.field("workingDir", kContainerFiles);
    TRY(arguments(json, tasks));
    TRY(variables(json, tasks, ends));
    resources(json, tasks.planned.front()->resources);
    json.key("volumeMounts").begin_array();
    if (!first.secrets.empty()) mount(json, "secrets", kContainerSecrets, true);
    if (!files_.empty()) mount(json, "files", kContainerFiles, false);
    for (size_t i = 0; i < options_.mounts.size(); ++i) {
      mount(json, fmt::format("mount{}", i), options_.mounts[i].target, options_.mounts[i].read_only);
    }
    json.end_array().end_object().end_array();
    json.key("volumes").begin_array();
    if (!first.secrets.empty()) volume(json, "secrets", tasks.name(plan_), first.secrets, kContainerSecrets);
    if (!files_.empty()) volume(json, "files", kube_name(plan_, "files"), files_, kContainerFiles);
    for (size_t i = 0; i < options_.mounts.size(); ++i) storage(json, fmt::format("mount{}", i), options_.mounts[i]);
    json.end_array().end_object();
    for (const ContainerTask& other : tasks.containers) {
      if (other.image != first.image || other.secrets != first.secrets) return differ(tasks, "images or secrets");
    }
    return {};
  }

  void security(JsonWriter& json) {
    if (options_.user.empty()) return;
    const auto parsed = parse_container_user(options_.user);
    const ContainerUser user = parsed ? *parsed : ContainerUser();
    json.key("securityContext").begin_object().field("runAsUser", user.user);
    json.field("runAsGroup", user.group).field("fsGroup", user.group).end_object();
  }

  static Error differ(const RoleTasks& tasks, std::string_view what) {
    return invalid("the {}s differ in their {}, and Kubernetes makes them all from one template: give them the same",
                   role_name(tasks.role), what);
  }

  Result<> arguments(JsonWriter& json, const RoleTasks& tasks) {
    const size_t count = tasks.first().arguments.size();
    if (count == 0) return {};
    json.key("args").begin_array();
    for (size_t i = 0; i < count; ++i) {
      std::vector<std::string> texts;
      for (const ContainerTask& task : tasks.containers) {
        if (task.arguments.size() != count) return differ(tasks, "commands");
        texts.push_back(task.arguments[i]);
      }
      const auto text = index_template(texts, kIndexVariable);
      if (!text) return differ(tasks, "commands");
      json.value(*text);
    }
    json.end_array();
    return {};
  }

  Result<> variables(JsonWriter& json, const RoleTasks& tasks, bool ends) {
    json.key("env").begin_array().begin_object().field("name", kIndexVariable).key("valueFrom").begin_object();
    json.key("fieldRef").begin_object();
    json.field("fieldPath", ends ? "metadata.annotations['batch.kubernetes.io/job-completion-index']"
                                 : "metadata.labels['apps.kubernetes.io/pod-index']");
    json.end_object().end_object().end_object();
    for (size_t i = 0; i < tasks.first().variables.size(); ++i) {
      std::vector<std::string> texts;
      const std::string& name = tasks.first().variables[i].first;
      for (const ContainerTask& task : tasks.containers) {
        if (i >= task.variables.size() || task.variables[i].first != name) return differ(tasks, "variables");
        texts.push_back(task.variables[i].second);
      }
      const auto text = index_template(texts, kIndexVariable);
      if (!text) return differ(tasks, "variable " + name);
      json.begin_object().field("name", name).field("value", *text).end_object();
    }
    json.end_array();
    return {};
  }

  static void resources(JsonWriter& json, const Resources& resources) {
    if (resources.cpus == 0 && resources.memory_bytes == 0 && resources.gpus == 0) return;
    json.key("resources").begin_object().key("requests").begin_object();
    if (resources.cpus > 0) json.field("cpu", std::to_string(resources.cpus));
    if (resources.memory_bytes > 0) json.field("memory", std::to_string(resources.memory_bytes));
    json.end_object();
    if (resources.gpus > 0) {
      json.key("limits").begin_object().field("nvidia.com/gpu", std::to_string(resources.gpus)).end_object();
    }
    json.end_object();
  }

  static void mount(JsonWriter& json, const std::string& name, const std::string& path, bool read_only) {
    json.begin_object().field("name", name).field("mountPath", path).field("readOnly", read_only).end_object();
  }

  static void storage(JsonWriter& json, const std::string& name, const ContainerMount& mount) {
    json.begin_object().field("name", name);
    if (mount.is_path()) {
      json.key("hostPath").begin_object().field("path", mount.source);
    } else {
      json.key("persistentVolumeClaim").begin_object().field("claimName", mount.source);
    }
    json.end_object().end_object();
  }

  static void volume(JsonWriter& json, const char* name, const std::string& secret,
                     const std::vector<ContainerTask::File>& files, std::string_view folder) {
    json.begin_object().field("name", name).key("secret").begin_object().field("secretName", secret);
    json.field("defaultMode", kOwnerMode).key("items").begin_array();
    for (size_t i = 0; i < files.size(); ++i) {
      json.begin_object().field("key", key(i)).field("path", files[i].path.substr(folder.size() + 1)).end_object();
    }
    json.end_array().end_object().end_object();
  }

  const Plan& plan_;
  const KubeOptions& options_;
  const std::vector<ContainerTask::File>& files_;
  const bool hide_;
  std::vector<KubeObject> objects_;
};

}  // namespace

Result<KubeOptions> read_kube_options(const Cluster& cluster) {
  KubeOptions options;
  options.kubeconfig = option_of(cluster, "kubeconfig");
  options.context = option_of(cluster, "context");
  options.server = option_of(cluster, "server");
  options.token_file = option_of(cluster, "token_file");
  options.ca_file = option_of(cluster, "ca_file");
  options.name_space = option_of(cluster, "namespace");
  options.user = option_of(cluster, "user");
  if (!options.user.empty()) TRY(parse_container_user(options.user).at("kubernetes:user=" + options.user));
  options.mounts = TRY(container_mounts(cluster));
  const std::string pull = option_of(cluster, "pull");
  if (pull == "always") options.pull = "Always";
  if (pull == "never") options.pull = "Never";
  if (!pull.empty() && pull != "always" && pull != "never" && pull != "missing") {
    return invalid("kubernetes:pull={}: it is always, missing or never", pull);
  }
  const std::string port = option_of(cluster, "port");
  if (!port.empty() && !parse_number<uint16_t>(port, 1, 65535, options.port)) {
    return invalid("kubernetes:port={}: a number from 1 to 65535", port);
  }
  return options;
}

std::string kube_name(const Plan& plan, std::string_view thing) {
  std::string run = plan.run.substr(0, kRunPartMax);
  while (run.ends_with('-')) run.pop_back();
  return thing.empty() ? fmt::format("{}-{}", run, plan.job) : fmt::format("{}-{}-{}", run, plan.job, thing);
}

ClusterView kube_view(const Plan& plan, const KubeOptions& options) {
  ClusterView view{plan.job, {}};
  for (const PlannedTask& task : plan.tasks) {
    const TaskId id = task.spec.id;
    const std::string host = fmt::format("{}-{}.{}", kube_name(plan, role_name(id.role)), id.index, kube_name(plan));
    view.tasks.push_back({id, {host, options.port}});
  }
  std::ranges::sort(view.tasks, {}, &TaskAddress::id);
  return view;
}

std::optional<std::string> index_template(const std::vector<std::string>& texts, std::string_view name) {
  if (std::ranges::all_of(texts, [&](const std::string& text) { return text == texts.front(); })) {
    return kube_literal(texts.front());
  }
  std::vector<std::vector<std::string_view>> parts;
  for (const std::string& text : texts) {
    parts.push_back(parts_of(text));
    if (parts.back().size() != parts.front().size()) return {};
  }
  std::string result;
  for (size_t part = 0; part < parts.front().size(); ++part) {
    bool same = true;
    bool index = true;
    for (size_t i = 0; i < parts.size(); ++i) {
      same = same && parts[i][part] == parts[0][part];
      index = index && parts[i][part] == std::to_string(i);
    }
    if (!same && !index) return {};
    result += same ? kube_literal(parts[0][part]) : fmt::format("$({})", name);
  }
  return result;
}

Result<std::vector<KubeObject>> kube_objects(const Plan& plan, const KubeOptions& options,
                                             const std::vector<ContainerTask::File>& files, bool hide) {
  return ManifestMaker(plan, options, files, hide).make();
}

std::string kube_list(const std::vector<KubeObject>& objects) {
  std::string items;
  for (const KubeObject& object : objects) items += (items.empty() ? "\n" : ",\n") + object.json;
  return R"({"apiVersion":"v1","kind":"List","items":[)" + items + "\n]}\n";
}

}  // namespace pscloud

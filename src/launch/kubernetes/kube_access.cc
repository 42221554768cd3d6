#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/base64.h"
#include "io/file_store.h"
#include "launch/kubernetes/kube_api.h"
#include "launch/process/spawn.h"
#include "launch/process/tool.h"
#include "net/address.h"

namespace pscloud {
namespace {

constexpr const char* kPodAccount = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr uint64_t kAccessBytesMax = 16 << 20;
constexpr std::chrono::seconds kKubectlPatience{30};

Result<std::string> read_file_text(const std::string& path) {
  const auto store = make_local_store();
  const auto input = TRY(store->open(path, {}).at(path));
  return read_all(*input, kAccessBytesMax).at(path);
}

std::string without_end(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ' || text.back() == '\r')) text.pop_back();
  return text;
}

Result<KubeAccess> checked(KubeAccess access) {
  while (access.server.ends_with('/')) access.server.pop_back();
  access.http.tries = 4;
  access.http.peer = "Kubernetes at " + access.server;
  if (access.server.starts_with("https://")) return access;
  const std::string_view host = host_of(access.server);
  if (access.server.starts_with("http://") && is_loopback(host.substr(0, host.rfind(':')))) {
    access.http.proxy = false;
    return access;
  }
  return invalid("'{}' is no address of a Kubernetes API: https://..., or http:// on loopback, of `kubectl proxy`",
                 access.server);
}

// The named item of clusters, users or contexts.
const JsonValue& named(const JsonValue& list, const std::string& name, const char* what) {
  static const JsonValue nothing;
  const auto found =
      std::ranges::find_if(list.items(), [&](const JsonValue& item) { return item["name"].text() == name; });
  return found == list.items().end() ? nothing : (*found)[what];
}

// What stands there as "name-data" in base64, or in a file that "name" names.
Result<std::string> data_or_file(const JsonValue& at, const std::string& name, const std::string& config) {
  if (const std::string& text = at[name + "-data"].text(); !text.empty()) {
    const auto bytes = parse_base64(text);
    if (!bytes) return invalid("{}: {}-data is not base64", config, name);
    return *bytes;
  }
  if (at[name].text().empty()) return std::string();
  return read_file_text(std::filesystem::path(config).parent_path() / at[name].text());
}

// By kubectl, which reads YAML, and merges several files.
Result<std::string> kubeconfig_json(const KubeOptions& options) {
  std::vector<std::string> words{"kubectl", "config", "view", "--raw", "--flatten", "--output=json"};
  if (!options.kubeconfig.empty()) words.push_back("--kubeconfig=" + options.kubeconfig);
  auto answer = tool_answer(words, "", kKubectlPatience);
  if (answer) return answer;
  return invalid(
      "kubectl, which reads kubeconfigs that are YAML, does not: {}; `kubectl config view --raw --flatten -o json` "
      "elsewhere makes one that is read here",
      answer.error().message);
}

Result<KubeAccess> access_of_pod() {
  KubeAccess access;
  const std::string folder = kPodAccount;
  access.server =
      fmt::format("https://{}:{}", own_variable("KUBERNETES_SERVICE_HOST"), own_variable("KUBERNETES_SERVICE_PORT"));
  access.token = without_end(TRY(read_file_text(folder + "/token")));
  access.http.ca_pem = TRY(read_file_text(folder + "/ca.crt"));
  access.name_space = without_end(TRY(read_file_text(folder + "/namespace")));
  return checked(std::move(access));
}

Result<KubeAccess> access_of_kubeconfig(const KubeOptions& options) {
  std::string file = options.kubeconfig;
  if (file.empty()) file = own_variable("KUBECONFIG");
  if (file.empty()) file = own_variable("HOME") + "/.kube/config";
  const auto text = read_file_text(file);
  if (!text && file.find(':') == std::string::npos) {
    return invalid(
        "no way to a Kubernetes cluster is known: there is no kubeconfig {}; name one by "
        "--on kubernetes:kubeconfig=FILE, or server=, token_file= and ca_file=",
        file);
  }
  if (text && text->find_first_not_of(" \t\r\n") != std::string::npos &&
      (*text)[text->find_first_not_of(" \t\r\n")] == '{') {
    return parse_kubeconfig(*text, file, options.context);
  }
  const std::string json = TRY(kubeconfig_json(options));
  return parse_kubeconfig(json, file, options.context);
}

}  // namespace

Result<KubeAccess> parse_kubeconfig(std::string_view json, const std::string& file, const std::string& context) {
  const JsonValue config = TRY(JsonValue::parse(json).at(file));
  const std::string name = context.empty() ? config["current-context"].text() : context;
  const JsonValue& chosen = named(config["contexts"], name, "context");
  if (chosen.is(JsonValue::Kind::kNull)) return invalid("{}: there is no context '{}' in it", file, name);
  const JsonValue& cluster = named(config["clusters"], chosen["cluster"].text(), "cluster");
  const JsonValue& user = named(config["users"], chosen["user"].text(), "user");
  if (cluster["insecure-skip-tls-verify"].truth()) {
    return invalid(
        "{}: insecure-skip-tls-verify of '{}' would give the token to whoever answers; name the cluster's "
        "certificate-authority instead",
        file, chosen["cluster"].text());
  }
  KubeAccess access;
  access.server = cluster["server"].text();
  access.http.ca_pem = TRY(data_or_file(cluster, "certificate-authority", file));
  access.http.certificate_pem = TRY(data_or_file(user, "client-certificate", file));
  access.http.key_pem = TRY(data_or_file(user, "client-key", file));
  access.token = user["token"].text();
  if (access.token.empty() && !user["tokenFile"].text().empty()) {
    access.token = without_end(TRY(read_file_text(user["tokenFile"].text())));
  }
  if (access.token.empty() && access.http.certificate_pem.empty() && !user["exec"].is(JsonValue::Kind::kNull)) {
    return invalid(
        "{}: '{}' logs in by the program {}, which is not run here; start `kubectl proxy` and say "
        "--on kubernetes:server=http://127.0.0.1:8001",
        file, chosen["user"].text(), user["exec"]["command"].text());
  }
  if (!chosen["namespace"].text().empty()) access.name_space = chosen["namespace"].text();
  return checked(std::move(access));
}

Result<KubeAccess> find_kube(const KubeOptions& options) {
  KubeAccess access;
  if (!options.server.empty()) {
    access.server = options.server;
    if (!options.token_file.empty()) access.token = without_end(TRY(read_file_text(options.token_file)));
    if (!options.ca_file.empty()) access.http.ca_pem = TRY(read_file_text(options.ca_file));
    access = TRY(checked(std::move(access)));
  } else if (options.kubeconfig.empty() && own_variable("KUBECONFIG").empty() &&
             ::access(fmt::format("{}/token", kPodAccount).c_str(), R_OK) == 0) {
    access = TRY(access_of_pod());
  } else {
    access = TRY(access_of_kubeconfig(options));
  }
  if (!options.name_space.empty()) access.name_space = options.name_space;
  return access;
}

}  // namespace pscloud

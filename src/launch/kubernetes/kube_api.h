#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_value.h"
#include "io/http_client.h"
#include "launch/kubernetes/kube_manifest.h"

namespace pscloud {

// DeleteOptions: what a controller has made goes with it. Were it to leave its pods, a StatefulSet would leave its
// ControllerRevision too, for ever.
inline constexpr const char* kKubeWithWhatItOwns =
    R"({"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background"})";
// DeleteOptions of a pod; 0 also removes it from the books if its node does not answer.
std::string kube_within(int grace_seconds);

// How a cluster is reached, and as whom.
struct KubeAccess {
  std::string server;  // "https://10.0.0.1:6443"
  std::string token;   // empty: by certificate, or whoever we are to a proxy
  std::string name_space = "default";
  HttpOptions http;
};

// By options; else by a kubeconfig (one that is JSON is read here, others by `kubectl config view`, which also knows
// how several are merged); else, inside of a cluster, by the account of this pod. The server always proves who it is,
// unless it is on loopback (`kubectl proxy`).
Result<KubeAccess> find_kube(const KubeOptions& options);

// Of a kubeconfig as JSON; `file` is for messages, and where relative paths in it begin.
Result<KubeAccess> parse_kubeconfig(std::string_view json, const std::string& file, const std::string& context);

// The API of Kubernetes, as much as a job needs. One thread.
class KubeApi {
 public:
  using Query = std::vector<std::pair<std::string, std::string>>;

  // A token that is not taken any more is looked for once more by `find`: it may have been renewed where it stands.
  explicit KubeApi(KubeAccess access, std::function<Result<KubeAccess>()> find = {});

  const KubeAccess& access() const { return access_; }

  // Errors have the server's own words: kNotFound for 404, kUnavailable if it cannot be reached, else kInvalid.
  Result<JsonValue> get(const std::string& path, const Query& query = {});
  Result<> create(const KubeObject& object);
  // Also if it is not there. `options` is a DeleteOptions.
  Result<> remove(const std::string& path, const std::string& options);

  HttpRequest request(const std::string& path, const Query& query) const;
  // "/api/v1/namespaces/default/pods".
  std::string path(std::string_view api, std::string_view collection) const;

 private:
  Result<HttpResponse> send_once_more(HttpRequest request);
  Result<HttpResponse> send(const HttpRequest& request);

  KubeAccess access_;
  std::function<Result<KubeAccess>()> find_;
  HttpClient client_;
};

}  // namespace pscloud

#include "launch/kubernetes/kube_clean.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "launch/kubernetes/kube_api.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kKubeLook{200};
constexpr std::chrono::seconds kBeyondKubeGrace{30};
// Then a pod that was to end is taken off the books: its node does not say that it has ended, and may never do so.
constexpr std::chrono::seconds kNodeIsSilent{10};

struct KubeKind {
  const char* api;
  const char* collection;
};
constexpr KubeKind kKubeKinds[] = {{"/apis/batch/v1", "jobs"},
                                   {"/apis/apps/v1", "statefulsets"},
                                   {"/api/v1", "pods"},
                                   {"/api/v1", "services"},
                                   {"/api/v1", "secrets"}};

// What is there of the job, removed if that was not done yet. `silent`: pods that are still there have had their time.
Result<std::vector<std::string>> remove_once(KubeApi& api, const std::string& job, bool silent) {
  std::vector<std::string> found;
  for (const KubeKind& kind : kKubeKinds) {
    const std::string path = api.path(kind.api, kind.collection);
    const JsonValue list = TRY(api.get(path, {{"labelSelector", fmt::format("{}={}", kKubeJobLabel, job)}}));
    for (const JsonValue& item : list["items"].items()) {
      const JsonValue& metadata = item["metadata"];
      // The server was asked for these alone; nothing else is touched though it should answer something else.
      if (metadata["labels"][kKubeJobLabel].text() != job) continue;
      const std::string& name = metadata["name"].text();
      found.push_back(fmt::format("{} {} in {}", kind.collection, name, api.access().name_space));
      const bool ending = !metadata["deletionTimestamp"].text().empty();
      const bool give_up = ending && silent && std::string_view(kind.collection) == "pods";
      if (ending && !give_up) continue;
      TRY(api.remove(fmt::format("{}/{}", path, name), give_up ? kube_within(0) : kKubeWithWhatItOwns));
    }
  }
  return found;
}

}  // namespace

Result<std::vector<std::string>> clean_kubernetes(const KubeOptions& options, const Plan& plan, Ledger& ledger) {
  std::vector<std::string> left;
  for (LedgerEntry& entry : ledger.remaining()) {
    if (entry.kind != kKubeEntry) continue;
    KubeAccess access = TRY(find_kube(options));
    if (access.server != entry.what["server"]) {
      left.push_back(fmt::format("all of {} at {}: the kubeconfig now leads to {}", plan.job, entry.what["server"],
                                 access.server));
      continue;
    }
    access.name_space = entry.what["namespace"];
    KubeApi api(std::move(access));
    const auto stopped = steady_clock::now() + milliseconds(plan.stop_grace_ms);
    while (true) {
      auto found = TRY(remove_once(api, entry.what["job"], steady_clock::now() >= stopped + kNodeIsSilent));
      if (found.empty()) {
        TRY(ledger.gone(entry.number));
        break;
      }
      if (steady_clock::now() >= stopped + kBeyondKubeGrace) {
        left.insert(left.end(), found.begin(), found.end());
        break;
      }
      std::this_thread::sleep_for(kKubeLook);
    }
  }
  return left;
}

}  // namespace pscloud

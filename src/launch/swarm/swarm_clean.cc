#include "launch/swarm/swarm_clean.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "launch/swarm/swarm_spec.h"

namespace pscloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLook{100};
constexpr std::chrono::seconds kBeyondGrace{30};  // an engine waits a few seconds by itself before it stops anything

// A kind of thing: where the engine keeps it, and where an item of a list has its name, id and labels.
struct SwarmThings {
  const char* kind;
  const char* path;
  const char* id;
  bool in_spec;
};
constexpr SwarmThings kServices{"service", "/services", "ID", true};
constexpr SwarmThings kOthers[] = {
    {"network", "/networks", "Id", false}, {"secret", "/secrets", "ID", true}, {"config", "/configs", "ID", true}};

struct Found {
  std::string id;
  std::string name;
};

class SwarmCleaner {
 public:
  SwarmCleaner(DockerEngine& engine, std::string job, milliseconds grace)
      : engine_(engine), job_(std::move(job)), deadline_(steady_clock::now() + grace + kBeyondGrace) {}

  Result<std::vector<std::string>> clean() {
    for (const Found& service : TRY(find(kServices))) TRY(engine_.remove("/services/" + service.id));
    std::vector<std::string> left = TRY(wait_for_tasks());
    for (const SwarmThings& things : kOthers) {
      if (auto more = TRY(remove_all(things)); !more.empty()) left.push_back(more);
    }
    for (const Found& service : TRY(find(kServices))) left.push_back("service " + service.name);
    return left;
  }

 private:
  DockerEngine::Query filters() const {
    return {{"filters", engine_filter("label", fmt::format("{}={}", kSwarmJobLabel, job_))}};
  }

  Result<std::vector<Found>> find(const SwarmThings& things) {
    const JsonValue list = TRY(engine_.get(things.path, filters()));
    std::vector<Found> found;
    for (const JsonValue& item : list.items()) {
      const JsonValue& spec = things.in_spec ? item["Spec"] : item;
      // The engine was asked for these alone; nothing else is touched though it should answer something else.
      if (spec["Labels"][kSwarmJobLabel].text() != job_) continue;
      found.push_back({item[things.id].text(), spec["Name"].text()});
    }
    return found;
  }

  // Containers go after their services: each task is there until its own is removed.
  Result<std::vector<std::string>> wait_for_tasks() {
    while (true) {
      const JsonValue tasks = TRY(engine_.get("/tasks", filters()));
      if (tasks.items().empty()) return std::vector<std::string>();
      if (steady_clock::now() >= deadline_) {
        std::vector<std::string> left;
        for (const JsonValue& task : tasks.items()) {
          left.push_back(fmt::format("container {} on node {}, {} for the swarm",
                                     task["Status"]["ContainerStatus"]["ContainerID"].text().substr(0, 12),
                                     task["NodeID"].text(), task["Status"]["State"].text()));
        }
        return left;
      }
      std::this_thread::sleep_for(kLook);
    }
  }

  // An engine refuses while a task that has just ended still holds it.
  Result<std::string> remove_all(const SwarmThings& things) {
    while (true) {
      const auto found = TRY(find(things));
      if (found.empty()) return std::string();
      std::string why;
      for (const Found& thing : found) {
        const auto removed = engine_.remove(fmt::format("{}/{}", things.path, thing.id));
        if (!removed) why = fmt::format("{} {}: {}", things.kind, thing.name, removed.error().message);
      }
      if (steady_clock::now() >= deadline_) {
        return why.empty() ? fmt::format("{} {}", things.kind, found.front().name) : why;
      }
      std::this_thread::sleep_for(kLook);
    }
  }

  DockerEngine& engine_;
  const std::string job_;
  const steady_clock::time_point deadline_;
};

}  // namespace

Result<std::vector<std::string>> clean_swarm(const Plan& plan, Ledger& ledger, const FindEngine& find) {
  std::vector<std::string> left;
  for (LedgerEntry& entry : ledger.remaining()) {
    if (entry.kind != kSwarmEntry) continue;
    DockerEngine engine(TRY(find(entry.what["host"])));
    const auto more = TRY(SwarmCleaner(engine, entry.what["job"], milliseconds(plan.stop_grace_ms)).clean());
    if (more.empty()) TRY(ledger.gone(entry.number));
    left.insert(left.end(), more.begin(), more.end());
  }
  return left;
}

}  // namespace pscloud

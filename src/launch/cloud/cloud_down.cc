#include "launch/cloud/cloud_down.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/clock.h"
#include "base/text.h"

namespace pscloud {
using std::chrono::steady_clock;

steady_clock::time_point quiet_after(const std::vector<LedgerEntry>& entries, const std::string& kind,
                                     std::chrono::seconds settle) {
  const auto now = steady_clock::now();
  auto until = now;
  for (const LedgerEntry& entry : entries) {
    int64_t begun = 0;
    if (entry.kind != kind || !entry.what.contains("at")) continue;
    parse_number(entry.what.at("at"), int64_t{0}, int64_t{1} << 40, begun);
    const auto age = std::chrono::seconds(std::clamp<int64_t>(unix_seconds_now() - begun, 0, settle.count()));
    until = std::max(until, now + settle - age);
  }
  return until;
}

Result<uint64_t> intend_thing(Ledger& ledger, const std::string& kind, const std::string& name) {
  return ledger.intend(kind, {{"name", name}, {"at", std::to_string(unix_seconds_now())}});
}

Result<> learned_things(Ledger& ledger, uint64_t entry, const std::vector<std::string>& ids) {
  // The call may have taken long: they are as old as its answer.
  return ledger.learn(entry,
                      {{"id", fmt::format("{}", fmt::join(ids, " "))}, {"at", std::to_string(unix_seconds_now())}});
}

std::map<std::string, std::vector<std::string>> known_ids(const std::vector<LedgerEntry>& entries) {
  std::map<std::string, std::vector<std::string>> ids;
  for (const LedgerEntry& entry : entries) {
    const auto found = entry.what.find("id");
    if (found == entry.what.end()) continue;
    std::istringstream words(found->second);
    for (std::string id; words >> id;) ids[entry.kind].push_back(id);
  }
  return ids;
}

Result<> sweep_ledger(AwsApi& api, Ledger& ledger, const std::string& kind, const std::string& cloud_id,
                      std::chrono::seconds settle, SweepOptions options) {
  std::vector<LedgerEntry> entries = ledger.remaining();
  std::erase_if(entries, [&](const LedgerEntry& each) { return each.kind != kind; });
  if (entries.empty()) return {};
  options.known = known_ids(entries);
  TRY(sweep_things(api, kind, cloud_id, quiet_after(entries, kind, settle), options));
  for (const LedgerEntry& entry : entries) TRY(ledger.gone(entry.number));
  return {};
}

Result<std::vector<std::string>> take_down(RunFolder& folder, const TakeDownOptions& options) {
  CloudState state = TRY(read_cloud_state(folder));
  state.step = "ending";
  TRY(folder.write("state.json", cloud_state_json(state)));
  std::error_code ignored;
  std::filesystem::remove(folder.path("cluster.json"), ignored);  // no job begins there any more
  Ledger ledger = TRY(Ledger::open(folder.path("ledger.jsonl")));
  AwsApi api = TRY(AwsApi::open({.environment = options.environment,
                                 .cancelled = options.cancelled,
                                 .region = state.plan.region,
                                 .endpoint = state.plan.endpoint,
                                 .call_timeout = call_timeout(options.timeout)}));
  SweepOptions sweep{.say = options.say, .cancelled = options.cancelled, .timeout = options.timeout};
  std::vector<std::string> left;
  for (const std::string& kind : cloud_kinds()) {
    const auto swept = sweep_ledger(api, ledger, kind, state.plan.id, options.settle, sweep);
    hurry_after(swept, sweep);
    if (!swept) left.push_back(fmt::format("{}: {}", kind, swept.error().message));
  }
  if (!left.empty()) return left;
  folder.settle();
  std::filesystem::remove_all(folder.path(), ignored);  // with the key
  return left;
}

Result<std::vector<std::string>> take_down(const std::string& name, const TakeDownOptions& options) {
  RunFolder folder = TRY(open_cloud_folder(name));
  if (!folder.lock()) {
    return unavailable("process {} brings the cluster '{}' up or down: wait for it, or end it (its clean-up follows)",
                       folder.watcher(), name);
  }
  return take_down(folder, options);
}

Result<std::vector<std::string>> take_down_by_id(const std::string& cloud_id, const std::string& region,
                                                 const std::string& endpoint, const TakeDownOptions& options) {
  AwsApi api = TRY(AwsApi::open({.environment = options.environment,
                                 .cancelled = options.cancelled,
                                 .region = region,
                                 .endpoint = endpoint,
                                 .call_timeout = call_timeout(options.timeout)}));
  return sweep_kinds(api, cloud_kinds(), cloud_id,
                     {.say = options.say, .cancelled = options.cancelled, .timeout = options.timeout});
}

}  // namespace pscloud

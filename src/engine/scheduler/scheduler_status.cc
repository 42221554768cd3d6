// What the scheduler tells people: who is missing, and its /status.

#include <algorithm>

#include "base/json.h"
#include "engine/node_status.h"
#include "engine/scheduler/scheduler.h"

namespace pscloud {

std::string Scheduler::missing_nodes() const {
  const auto servers = static_cast<int>(whole_servers().size());
  const auto workers = static_cast<int>(
      std::ranges::count_if(entries_, [](const Entry& e) { return e.info.role == Role::kWorker && e.lane != 0; }));
  const int needed = options_.workers_min > 0 ? options_.workers_min : options_.workers;
  std::string text;
  if (servers < options_.servers) {
    text = fmt::format("{} of {} server{}", options_.servers - servers, options_.servers,
                       options_.servers == 1 ? "" : "s");
  }
  if (workers < needed) {
    text += fmt::format("{}{} of {} worker{}", text.empty() ? "" : " and ", needed - workers, needed,
                        needed == 1 ? "" : "s");
  }
  return text;
}

std::string Scheduler::waiting_for() const {
  if (view_.phase == Phase::kForming) return missing_nodes();
  const bool late = std::ranges::any_of(entries_, [](const Entry& e) { return !e.placed; });
  if (const Entry* holder = maybe_dead(); late && holder != nullptr && !recovering_) {
    return fmt::format("the place of {}, {}", holder->info.name(),
                       holder->lane == 0 ? "whose connection has closed" : "which is silent");
  }
  std::string names;
  for (const Entry& entry : entries_) {
    const bool awaited = recovering_ ? entry.lane == 0 : view_.phase != Phase::kRunning;
    if (entry.placed && entry.info.state == NodeState::kLive && awaited) {
      names += (names.empty() ? "" : ", ") + entry.info.name();
    }
  }
  if (recovering_ && !names.empty()) return names + " to come back";
  return names;
}

std::string Scheduler::barrier_waits_for() const {
  if (view_.phase != Phase::kRunning) return "the end of the job";
  if (!recovering_) return barrier_missing_;
  // We are new: who has come to the barrier is not known before everybody is back.
  const std::string names = waiting_for();
  return names.empty() ? "the new scheduler to take the job up" : names;
}

double Scheduler::longest_silence_ms() const {
  Duration longest{};
  for (const Entry& entry : entries_) {
    if (entry.info.state == NodeState::kLive) longest = std::max(longest, clock_.now() - entry.heard);
  }
  return in_seconds(longest) * 1000;
}

std::string Scheduler::status_json() const {
  static constexpr const char* kPhases[] = {"forming", "running", "stopping", "failed"};
  static constexpr const char* kStates[] = {"", "live", "done", "dead"};
  JsonWriter json;
  json.begin_object();
  json.field("role", "scheduler").field("job", options_.job);
  json.field("phase", kPhases[static_cast<int>(view_.phase)]).field("view", view_.version);
  if (!view_.reason.empty()) json.field("reason", view_.reason);
  const std::string waits = waiting_for();
  write_names(json, "waiting_for", {&waits, waits.empty() ? 0u : 1u});
  json.field("barriers", barriers_);
  json.key("nodes").begin_array();
  for (const Entry& entry : entries_) {
    json.begin_object();
    json.field("name", entry.placed ? entry.info.name() : std::string(role_name(entry.info.role)));
    json.field("role", role_name(entry.info.role));
    json.field("state", entry.placed ? kStates[static_cast<int>(entry.info.state)] : "waiting");
    if (entry.placed) json.field("rank", entry.info.rank);
    if (!entry.info.address.empty()) json.field("address", entry.info.address);
    json.field("heard_ms_ago", int64_t{(clock_.now() - entry.heard).count() / 1000});
    if (!entry.waiting_for.empty()) json.field("waiting_for", entry.waiting_for);
    json.end_object();
  }
  json.end_array().end_object();
  return json.text();
}

}  // namespace pscloud

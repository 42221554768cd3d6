#include <pwd.h>
#include <unistd.h>

#include <algorithm>

#include "base/json.h"
#include "console/api_parts.h"
#include "console/reply.h"
#include "launch/run_report.h"

namespace pscloud {
namespace {

constexpr int64_t kRunsShown = 100;
constexpr int64_t kRunsShownMax = 1000;

// What RunFolder makes, and nothing that means something to a file system.
bool is_run_name(std::string_view name) {
  constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return !name.empty() && name.size() <= 100 && name.front() != '.' &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

void write_run(JsonWriter& json, const RunReport& report) {
  const RunState& state = report.state;
  json.begin_object().field("name", state.run).field("where", state.target).field("state", report.word());
  json.field("nodes", static_cast<uint64_t>(state.tasks.size())).field("since_unix_ms", state.began_unix_ms);
  json.key("ended_unix_ms");
  state.ended_unix_ms > 0 ? json.value(state.ended_unix_ms) : json.null();
  json.field("waiting_for", state.ended() ? "" : state.message);
  write_cost(json, "cost_usd", state.cost_usd(unix_ms_now()));
  json.field("cost_incomplete", state.cost_incomplete);
  json.end_object();
}

}  // namespace

void write_cost(JsonWriter& json, std::string_view name, double usd) {
  json.key(name);
  usd > 0 ? json.value(usd) : json.null();
}

Result<RunFolder> find_run(const std::string& runs, const std::string& name) {
  if (!is_run_name(name)) return not_found("there is no run of this name");
  return RunFolder::open(runs, name);
}

// Of each run the file system is asked whether it is there, but only those of this page are read.
HttpReply runs_reply(const std::string& runs, const HttpCall& call) {
  const auto limit = number_of(call, "limit", kRunsShown, 1, kRunsShownMax);
  if (!limit) return error_reply(limit.error());
  const std::string* state = call.find_query("state");
  if (state != nullptr && *state != "open" && *state != "all") return error_reply(400, "state must be open or all");
  std::vector<RunEntry> entries = list_runs(runs);
  if (state != nullptr && *state == "open") std::erase_if(entries, [](const RunEntry& run) { return run.settled; });
  auto next = entries.begin();
  if (const std::string* before = call.find_query("before")) {
    next = std::ranges::find(entries, *before, &RunEntry::name);
    if (next == entries.end()) return error_reply(404, "there is no run of the name that `before` has");
    ++next;
  }
  JsonWriter json;
  json.begin_object().key("runs").begin_array();
  int64_t shown = 0;
  for (; next != entries.end() && shown < *limit; ++next) {
    const auto folder = RunFolder::open(runs, next->name);
    const auto report = folder ? look_at_run(*folder) : Result<RunReport>(folder.error());
    if (!report) continue;  // it was just removed, or is not readable
    write_run(json, *report);
    ++shown;
  }
  json.end_array().field("total", static_cast<uint64_t>(entries.size())).key("next");
  next == entries.end() || next == entries.begin() ? json.null() : json.value(std::prev(next)->name);
  return json_reply(json.end_object().text());
}

HttpReply about_reply(const ApiOptions& options) {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  passwd entry{};
  passwd* found = nullptr;
  char names[4096];
  ::getpwuid_r(::geteuid(), &entry, names, sizeof names, &found);
  JsonWriter json;
  json.begin_object().field("version", options.version).field("host", host);
  json.field("user", found != nullptr ? found->pw_name : std::to_string(::geteuid()));
  return json_reply(json.field("controller", options.controller).end_object().text());
}

}  // namespace pscloud

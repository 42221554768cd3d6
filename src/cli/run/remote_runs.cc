#include "cli/run/remote_runs.h"

#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <thread>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "cli/exit_code.h"
#include "cli/table_text.h"

namespace pscloud {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kAskEvery{300};
constexpr const char* kEndedWords[] = {"done", "failed", "missing", "interrupted", "lost"};

// Names go into URLs: what is none of ours is no run.
Result<> check_word(const std::string& word) {
  constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  if (word.find_first_not_of(kAllowed) == std::string::npos) return {};
  return invalid("'{}' is no name of a run or task", escape_controls(word));
}

bool has_ended(const JsonValue& run) {
  for (const char* word : kEndedWords) {
    if (run["state"].text() == word) return true;
  }
  return false;
}

std::string clean(const JsonValue& value) { return escape_controls(value.text()); }

void print_run(const JsonValue& run) {
  const std::string message = clean(run["message"]);
  fmt::print("{} on {}: {}{}{}\n", clean(run["name"]), clean(run["where"]), clean(run["state"]),
             message.empty() ? "" : ": ", message);
  print_cost(run["cost_usd_per_hour"].number(), run["cost_usd"].number(), run["cost_incomplete"].truth());
  std::vector<std::vector<std::string>> rows{{"TASK", "WHERE", "STATE", "EXIT", "ADDRESS"}};
  for (const JsonValue& task : run["tasks"].items()) {
    const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : text; };
    rows.push_back({clean(task["task"]), or_dash(clean(task["host"])), clean(task["state"]),
                    task["code"].is(JsonValue::Kind::kNumber) ? std::to_string(task["code"].integer()) : "-",
                    or_dash(clean(task["address"]))});
  }
  print_table(rows);
}

void print_list(const JsonValue& list) {
  std::vector<std::vector<std::string>> rows{{"NAME", "WHERE", "STATE", "NODES", "SINCE", ""}};
  for (const JsonValue& run : list["runs"].items()) {
    const int64_t ended = run["ended_unix_ms"].integer();
    rows.push_back({clean(run["name"]), clean(run["where"]), clean(run["state"]),
                    std::to_string(run["nodes"].integer()),
                    age_text(ended > 0 ? ended : run["since_unix_ms"].integer()), clean(run["waiting_for"])});
  }
  print_table(rows);
}

void write_json(JsonWriter& json, const JsonValue& value) {
  switch (value.kind()) {
    case JsonValue::Kind::kNull: json.null(); break;
    case JsonValue::Kind::kBool: json.value(value.truth()); break;
    case JsonValue::Kind::kNumber: json.value(value.number()); break;
    case JsonValue::Kind::kString: json.value(value.text()); break;
    case JsonValue::Kind::kArray:
      json.begin_array();
      for (const JsonValue& item : value.items()) write_json(json, item);
      json.end_array();
      break;
    case JsonValue::Kind::kObject:
      json.begin_object();
      for (const auto& [name, member] : value.members()) write_json(json.key(name), member);
      json.end_object();
      break;
  }
}

void print_json(const JsonValue& value) {
  JsonWriter json;
  write_json(json, value);
  fmt::print("{}\n", json.text());
}

// Asks for the end of a run and waits until it has come; the word for how it ended.
Result<std::string> stop_and_wait(ControllerClient& client, const std::string& run, bool at_once, int timeout_s) {
  const auto deadline = steady_clock::now() + std::chrono::seconds(timeout_s);
  TRY(client.post("/api/runs/" + run + "/stop"));
  if (at_once) TRY(client.post("/api/runs/" + run + "/stop"));  // the second one leaves no grace
  while (true) {
    const JsonValue state = TRY(client.get("/api/runs/" + run));
    if (has_ended(state)) return state["state"].text();
    if (steady_clock::now() >= deadline) {
      return timed_out("the run '{}' is still being stopped; `pscloud stop {} --at-once` does not wait for its tasks",
                       run, run);
    }
    std::this_thread::sleep_for(kAskEvery);
  }
}

// A line at a time, so that tasks do not mix.
class LinePrinter {
 public:
  LinePrinter(std::string task, bool named) : task_(std::move(task)), named_(named) {}

  void take(std::string_view text) {
    offset_ += text.size();
    if (!named_) {
      std::fwrite(text.data(), 1, text.size(), stdout);
      return;
    }
    for (size_t end = 0; !text.empty(); text.remove_prefix(std::min(end + 1, text.size()))) {
      end = std::min(text.find('\n'), text.size());
      if (!in_line_) fmt::print("[{}] ", task_);
      std::fwrite(text.data(), 1, std::min(end + 1, text.size()), stdout);
      in_line_ = end == text.size();
    }
  }
  const std::string& task() const { return task_; }
  uint64_t offset() const { return offset_; }

 private:
  std::string task_;
  bool named_;
  bool in_line_ = false;
  uint64_t offset_ = 0;
};

Result<> print_logs(ControllerClient& client, const std::string& run, const std::string& task, bool follow) {
  std::vector<LinePrinter> logs;
  if (!task.empty()) logs.emplace_back(task, false);
  while (true) {
    // Asked before: what was written until then is read after.
    const JsonValue state = TRY(client.get("/api/runs/" + run));
    const bool goes_on = follow && !has_ended(state);
    if (logs.empty()) {
      for (const JsonValue& each : state["tasks"].items()) logs.emplace_back(each["task"].text(), true);
    }
    for (LinePrinter& log : logs) {
      TRY(check_word(log.task()));
      while (true) {
        const std::string text = TRY(client.read_log(run, log.task(), log.offset()));
        if (text.empty()) break;
        log.take(text);
      }
    }
    if (std::fflush(stdout) != 0 || !goes_on) return {};
    std::this_thread::sleep_for(kAskEvery);
  }
}

}  // namespace

int remote_status(const ControllerFlags& flags, const std::string& run, bool all, bool json) {
  if (const auto checked = check_word(run); !checked) return fail(checked.error());
  auto client = ControllerClient::open(flags);
  if (!client) return fail(client.error());
  const auto answer =
      client->get(run.empty() ? (all ? "/api/runs?limit=1000" : "/api/runs?limit=20") : "/api/runs/" + run);
  if (!answer) return fail(answer.error());
  if (json) {
    print_json(*answer);
  } else if (run.empty()) {
    print_list(*answer);
  } else {
    print_run(*answer);
  }
  return kExitDone;
}

int remote_logs(const ControllerFlags& flags, const std::string& run, const std::string& task, bool follow) {
  for (const std::string& word : {run, task}) {
    if (const auto checked = check_word(word); !checked) return fail(checked.error());
  }
  auto client = ControllerClient::open(flags);
  if (!client) return fail(client.error());
  const auto printed = print_logs(*client, run, task, follow);
  return printed ? kExitDone : fail(printed.error());
}

int remote_stop(const ControllerFlags& flags, const std::string& run, bool at_once, int timeout_s, bool json) {
  if (const auto checked = check_word(run); !checked) return fail(checked.error());
  auto client = ControllerClient::open(flags);
  if (!client) return fail(client.error());
  const auto state = stop_and_wait(*client, run, at_once, timeout_s);
  if (!state) return fail(state.error());
  if (json) {
    JsonWriter writer;
    fmt::print("{}\n", writer.begin_object().field("run", run).field("state", *state).end_object().text());
  } else {
    fmt::print("{} {}\n", run, escape_controls(*state));
  }
  return kExitDone;
}

int remote_down(const ControllerFlags& flags, bool all, int timeout_s, bool json) {
  auto client = ControllerClient::open(flags);
  if (!client) return fail(client.error());
  const auto open = client->get("/api/runs?state=open&limit=1000");
  if (!open) return fail(open.error());
  JsonWriter writer;
  writer.begin_object().key("runs").begin_array();
  size_t done = 0;
  for (const JsonValue& run : (*open)["runs"].items()) {
    const std::string name = run["name"].text();
    if (!check_word(name) || (!all && !has_ended(run))) continue;
    const auto state = stop_and_wait(*client, name, false, timeout_s);
    if (!state) return fail(state.error());
    ++done;
    writer.begin_object().field("run", name).field("state", *state).end_object();
    if (!json) fmt::print("{}: {}\n", name, escape_controls(*state));
  }
  if (json) fmt::print("{}\n", writer.end_array().end_object().text());
  if (!json && done == 0) fmt::print("nothing was left\n");
  return kExitDone;
}

}  // namespace pscloud

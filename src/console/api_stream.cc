#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "console/api_parts.h"
#include "console/line_follower.h"
#include "console/reply.h"
#include "console/run_view.h"

namespace pscloud {
namespace {

using std::chrono::steady_clock;

// Files are looked at so often; a file that has more than is sent at once, a little later again.
constexpr std::chrono::milliseconds kLookEvery{100};
constexpr std::chrono::milliseconds kLookAgain{50};
constexpr std::chrono::seconds kStateEvery{1};
// One that comes late, or is lost with a break of the connection, does no harm.
constexpr std::chrono::seconds kAliveEvery = HttpServer::kStreamTime / 3;

struct FollowedLog {
  std::string task;
  LineFollower lines;
};

// What happens to a run, as events, until it is over.
class RunStream {
 public:
  RunStream(RunFolder folder, std::vector<FollowedLog> logs)
      : folder_(std::move(folder)),
        view_(folder_),
        logs_(std::move(logs)),
        samples_(folder_.path(kSampleFile), LineFollower::From::kEnd) {
    view_.take_last_samples();
  }

  void run(HttpStream& out) {
    while (true) {
      // Asked before: what was written until then is read after.
      const bool over = !folder_.is_watched();
      events_.clear();
      const bool more_samples = add_samples(over);
      const bool more = add_lines(over) || more_samples;
      const auto now = steady_clock::now();
      if (over ? !more : now >= state_at_) add_state(now);
      if (over && !more) add_event("end", "{}");
      if (events_.empty() && quiet_ >= kAliveEvery) events_ = ": alive\n\n";
      if (!events_.empty()) quiet_ = {};
      if (!out.write(events_) || (over && !more)) return;
      const auto pause = more ? kLookAgain : kLookEvery;
      if (!out.pause(pause)) return;
      quiet_ += pause;
    }
  }

 private:
  void add_event(std::string_view name, std::string_view data) {
    fmt::format_to(std::back_inserter(events_), "event: {}\ndata: {}\n\n", name, data);
  }

  void add_state(steady_clock::time_point now) {
    state_at_ = now + kStateEvery;
    auto state = view_.json();
    if (!state || *state == state_) return;
    state_ = *std::move(state);
    add_event("state", state_);
  }

  bool add_lines(bool last) {
    bool more = false;
    for (FollowedLog& log : logs_) {
      more = log.lines.read(lines_, last) || more;
      if (lines_.empty()) continue;
      JsonWriter json;
      json.begin_object().field("task", log.task).field("offset", log.lines.offset()).key("lines").begin_array();
      for (const std::string_view line : lines_) json.value(line);
      add_event("lines", json.end_array().end_object().text());
    }
    return more;
  }

  bool add_samples(bool last) {
    const bool more = samples_.read(lines_, last);
    JsonWriter json;
    json.begin_object().key("rows").begin_array();
    bool any = false;
    for (const std::string_view line : lines_) {
      const auto sample = parse_sample(line);
      if (!sample) continue;
      any = true;
      view_.take(*sample);
      json.begin_array().value(sample->unix_ms).value(sample->task).value(sample->name).value(sample->value);
      json.end_array();
    }
    if (any) add_event("samples", json.end_array().end_object().text());
    return more;
  }

  const RunFolder folder_;
  RunView view_;
  std::vector<FollowedLog> logs_;
  LineFollower samples_;
  std::vector<std::string_view> lines_;
  std::string events_;
  std::string state_;
  steady_clock::time_point state_at_;
  std::chrono::milliseconds quiet_{};  // since the last that was written
};

Result<std::vector<FollowedLog>> choose_logs(const RunFolder& folder, const HttpCall& call) {
  const std::string* from_text = call.find_query("from");
  if (from_text != nullptr && *from_text != "end" && *from_text != "start") return invalid("from must be end or start");
  const auto from =
      from_text != nullptr && *from_text == "start" ? LineFollower::From::kStart : LineFollower::From::kEnd;
  const std::string* wanted = call.find_query("logs");
  std::vector<std::string> tasks;
  if (wanted != nullptr && *wanted == "all") {
    const RunState state = TRY(folder.state());
    for (const TaskStatus& task : state.tasks) tasks.push_back(task.id.text());
  } else if (wanted != nullptr) {
    for (size_t at = 0; at < wanted->size();) {
      const size_t end = std::min(wanted->find(',', at), wanted->size());
      tasks.push_back(wanted->substr(at, end - at));
      at = end + 1;
    }
  }
  std::ranges::sort(tasks);
  tasks.erase(std::unique(tasks.begin(), tasks.end()), tasks.end());
  std::vector<FollowedLog> logs;
  for (std::string& task : tasks) {
    LineFollower lines(TRY(log_path(folder, task)), from);
    logs.push_back({std::move(task), std::move(lines)});
  }
  return logs;
}

}  // namespace

HttpReply stream_reply(RunFolder folder, const HttpCall& call) {
  auto logs = choose_logs(folder, call);
  if (!logs) return error_reply(logs.error());
  HttpReply reply{.status = 200, .content_type = "text/event-stream"};
  const auto stream = std::make_shared<RunStream>(std::move(folder), *std::move(logs));
  reply.stream = [stream](HttpStream& out) { stream->run(out); };
  return reply;
}

}  // namespace pscloud

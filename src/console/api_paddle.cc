#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "console/api_parts.h"
#include "console/reply.h"
#include "launch/run_report.h"

namespace pscloud {
namespace {

// The HTTP service of Paddle's tool for clusters on AWS, for whoever has scripts for it (docs/controller.md).
constexpr const char* kPaddleType = "text/text";
constexpr off_t kSavedBytesMax = 64 << 20;

HttpReply paddle_text(int status, std::string text) {
  return {.status = status, .content_type = kPaddleType, .body = std::move(text)};
}

// "trainer_0.log": Paddle's word for the role, and a number where it had an address or a number.
std::string paddle_name(TaskId id) {
  const char* role = id.role == TaskRole::kWorker   ? "trainer"
                     : id.role == TaskRole::kServer ? "pserver"
                                                    : role_name(id.role);
  return fmt::format("{}_{}.log", role, id.index);
}

// The task whose log is called so; a pserver may be called by its address, as Paddle's were.
Result<std::string> find_paddle_log(const RunFolder& folder, const std::string& name) {
  if (name == "master.log") return folder.path("launcher.log");
  const RunState state = TRY(folder.state());
  for (const TaskStatus& task : state.tasks) {
    const bool by_address =
        task.id.role == TaskRole::kServer &&
        (name == fmt::format("pserver_{}.log", task.host) || name == fmt::format("pserver_{}.log", task.address.host));
    if (by_address || name == paddle_name(task.id)) return folder.path("logs/" + task.id.text() + ".log");
  }
  return not_found("no log is called so; what tasks write to stderr is in the same file as the rest");
}

HttpReply list_logs(const RunFolder& folder) {
  const auto state = folder.state();
  if (!state) return error_reply(state.error());
  std::string names = "master.log\n";
  for (const TaskStatus& task : state->tasks) names += paddle_name(task.id) + "\n";
  return paddle_text(200, std::move(names));
}

HttpReply save_data(const RunFolder& folder, const std::string& body) {
  const Fd file(::open(folder.path(folder.name() + ".txt").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0) return paddle_text(500, "cannot save it\n");
  if (info.st_size + static_cast<off_t>(body.size()) > kSavedBytesMax) return paddle_text(413, "there is too much\n");
  if (::write(file.get(), body.data(), body.size()) != static_cast<ssize_t>(body.size())) {
    return paddle_text(500, "cannot save it\n");
  }
  return paddle_text(200, "DATA SAVED!");
}

// The one that is asked for, or else that of this controller, or else the newest.
Result<RunFolder> choose_run(const ApiOptions& options, const HttpCall& call) {
  if (const std::string* name = call.find_query("run")) return find_run(options.runs, *name);
  if (!options.run.empty()) return find_run(options.runs, options.run);
  const std::vector<RunEntry> entries = list_runs(options.runs);
  if (entries.empty()) return not_found("there is no run");
  return find_run(options.runs, entries.front().name);
}

}  // namespace

HttpReply paddle_reply(const ApiOptions& options, const HttpCall& call) {
  constexpr std::string_view kLog = "/log/";
  if (call.method == "HEAD") return paddle_text(200, "");
  const bool posts = call.method == "POST";
  const bool reads_log = !posts && call.path.starts_with(kLog);
  const bool lists = !posts && (call.path == "/list_logs" || call.path == "/logs");
  const bool tells = !posts && (call.path == "/status" || call.path == "/master_logs");
  const bool cleans = posts && call.path == "/cleanup";
  const bool saves = posts && call.path == "/save_data";
  if (!reads_log && !lists && !tells && !cleans && !saves) return paddle_text(404, "NO ACTION FOUND");
  auto folder = choose_run(options, call);
  if (!folder) return paddle_text(404, folder.error().message + "\n");
  if (lists) return list_logs(*folder);
  if (saves) return save_data(*folder, call.body);
  if (cleans) {
    const auto state = begin_stop(options, *folder);
    options.cleanup_asked(folder->name());
    return state ? paddle_text(200, "cleanup in progress") : error_reply(state.error());
  }
  const auto path = find_paddle_log(*folder, tells ? "master.log" : call.path.substr(kLog.size()));
  if (!path) return paddle_text(404, path.error().message + "\n");
  return file_reply(*path, call, kPaddleType);
}

}  // namespace pscloud

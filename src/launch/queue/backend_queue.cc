#include "launch/queue/backend_queue.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/check.h"
#include "base/text.h"

namespace pscloud {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

// Where all tasks see them, for these are the folders that they work in.
Result<> copy_files(const std::vector<std::string>& files, const std::string& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  for (const std::string& file : files) {
    const fs::path from = fs::path(file).lexically_normal();
    const fs::path name = from.has_filename() ? from.filename() : from.parent_path().filename();
    if (!failure) fs::copy(from, fs::path(folder) / name, fs::copy_options::recursive, failure);
    if (failure) return invalid("cannot copy {} to {}: {}", file, folder, failure.message());
  }
  return {};
}

}  // namespace

Result<> QueueBackend::release(const ClusterView& view) {
  CHECK(watch_ != nullptr);
  return watch_->release(view);
}

Result<> QueueBackend::stop(TaskId task, bool at_once) {
  CHECK(watch_ != nullptr);
  return watch_->stop(task, at_once);
}

Result<std::vector<TaskEvent>> QueueBackend::wait(Now deadline, int wake_fd) {
  CHECK(watch_ != nullptr);
  while (true) {
    Now now = steady_clock::now();
    std::vector<TaskEvent> events = watch_->look(now);
    if (now >= ask_at_) ask_at_ = ask_queue(now, events);
    now = steady_clock::now();
    if (!events.empty() || now >= deadline) return events;
    std::vector<pollfd> polled = {{wake_fd, POLLIN, 0}};
    watch_->add_to(polled);
    const auto left = std::chrono::ceil<milliseconds>(std::min({deadline, ask_at_, watch_->look_again()}) - now);
    ::poll(polled.data(), polled.size(), static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if ((polled[0].revents & POLLIN) != 0) return events;
  }
}

Result<> QueueBackend::check_files(const Plan& plan) {
  std::vector<std::string> missing;
  std::error_code failure;
  for (const std::string& file : plan.files) {
    if (!fs::exists(file, failure)) missing.push_back(file);
  }
  if (missing.empty()) return {};
  return invalid("not there to be copied: {}", fmt::join(missing, ", "));
}

Result<> QueueBackend::check_shared(const std::string& shared, std::string_view option) {
  fs::path nearest = shared;
  std::error_code failure;
  while (!fs::exists(nearest, failure) && nearest.has_relative_path()) nearest = nearest.parent_path();
  if (::access((nearest / ".").c_str(), W_OK | X_OK) == 0) return {};
  return invalid("cannot make a folder in {}: {}; choose another by {}=...", nearest.string(), errno_text(errno),
                 option);
}

Result<FolderWatch*> QueueBackend::meet_in_folder(const Plan& plan, const std::string& shared, FolderTimes times,
                                                  Ledger& ledger) {
  const std::string path = fmt::format("{}/{}", shared, plan.job);
  TRY(ledger.intend(kFolderKind, {{"path", path}}));
  SharedFolder folder = TRY(SharedFolder::make(shared, plan.job));
  const std::string files = folder.path_of("files");
  if (!plan.files.empty()) TRY(copy_files(plan.files, files));
  std::vector<TaskId> tasks;
  for (size_t number = 0; number < plan.tasks.size(); ++number) {
    TaskSpec spec = plan.tasks[number].spec;
    if (!plan.files.empty() && spec.folder.empty()) spec.folder = files;
    // Here it is removed with the rest, whatever becomes of the machine that it runs on.
    if (spec.private_folder.empty()) spec.private_folder = folder.path_of("private." + spec.id.text());
    TRY(folder.write(folder_file::spec(static_cast<int>(number)), task_spec_json(spec)));
    tasks.push_back(spec.id);
  }
  auto watch = TRY(FolderWatch::begin(std::move(folder), plan.job, tasks, times, steady_clock::now()));
  FolderWatch* const found = watch.get();
  watch_ = std::move(watch);
  return found;
}

Result<> QueueBackend::remove_folder(const LedgerEntry& entry, Ledger& ledger) {
  TRY(SharedFolder::remove(entry.what.at("path")));
  return ledger.gone(entry.number);
}

Result<> make_private_folder(const std::string& path) {
  std::error_code failure;
  fs::create_directories(path, failure);
  if (!failure) fs::permissions(path, fs::perms::owner_all, failure);
  if (failure) return unavailable("cannot make the folder {}: {}", path, failure.message());
  return {};
}

std::string absolute_path(const std::string& path) {
  std::error_code failure;
  const fs::path absolute = fs::absolute(path, failure);
  return failure || path.empty() ? path : absolute.lexically_normal().string();
}

std::vector<std::string> folder_arguments(const std::string& folder, FolderTimes times) {
  return {"queued-task",
          "--folder",
          folder,
          "--heartbeat-ms",
          fmt::to_string(times.heartbeat.count()),
          "--lost-after-ms",
          fmt::to_string(times.lost_after.count())};
}

Result<milliseconds> seconds_option(const Cluster& cluster, std::string_view name, milliseconds otherwise) {
  const std::string text = option_of(cluster, name);
  if (text.empty()) return otherwise;
  int seconds = 0;
  if (!parse_number(text, 1, 1 << 20, seconds)) {
    return invalid("{}: '{}' must be a number of seconds, not '{}'", cluster.target, name, text);
  }
  return milliseconds(int64_t{seconds} * 1000);
}

}  // namespace pscloud

#include "launch/rendezvous/folder_link.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <thread>

#include "base/json_value.h"
#include "base/log.h"
#include "launch/agent/agent_message.h"
#include "launch/rendezvous/rendezvous_file.h"
#include "net/sigpipe.h"

namespace pscloud {
namespace {

// What is kept when the disk takes nothing: lines stay with the programs from then on.
constexpr size_t kUnsentBytesMax = size_t{1} << 20;
constexpr std::chrono::milliseconds kRunningPoll{150};  // as the launcher looks (folder_watch.cc)

}  // namespace

FolderLink::FolderLink(SharedFolder folder, const TaskSpec& spec, FolderTimes times, Lines lines, Time now)
    : folder_(std::move(folder)),
      job_(spec.job),
      task_(spec.id),
      attempt_(spec.attempt),
      times_(times),
      lines_(lines),
      stop_name_(folder_file::stop(spec.id)),
      messages_name_(folder_file::messages(spec.id, spec.attempt)),
      look_at_(now),
      beat_at_(now),
      leader_at_(now),
      leader_by_(now + std::chrono::milliseconds(spec.arrive_timeout_ms)) {}

void FolderLink::say(const TaskEvent& event) {
  if (!failure_.empty()) return;
  if (event.kind == TaskEvent::Kind::kArrived) {
    arrive(event);
    return;
  }
  if (event.kind == TaskEvent::Kind::kLine && lines_ == Lines::kHere) {
    // The program goes on though nobody reads what it writes any more.
    const SigpipeBlock quiet;
    FILE* const out = event.is_stderr ? stderr : stdout;
    std::fwrite(event.text.data(), 1, event.text.size(), out);
    if (!event.continues) std::fputc('\n', out);
    std::fflush(out);
    return;
  }
  if (event.kind == TaskEvent::Kind::kLost && lines_ == Lines::kHere) why_ = event.text;
  unsent_ += agent_line(event);
  unsent_ += '\n';
  if (event.kind != TaskEvent::Kind::kLine) send();
}

void FolderLink::arrive(const TaskEvent& event) {
  own_address_ = event.address.text();
  const Arrival arrival{job_, task_, attempt_, event.address, event.host, ::getpid()};
  const auto created = folder_.create(folder_file::arrival(task_, attempt_), arrival_json(arrival));
  if (!created) {
    failure_ = created.error().code == Code::kInvalid
                   ? fmt::format("{} has been started twice: {}", task_.text(), created.error().message)
                   : created.error().message;
    return;
  }
  arrived_ = true;
  backoff_.reset();
}

void FolderLink::send() {
  if (unsent_.empty()) return;
  if (!messages_) {
    const std::string path = folder_.path_of(messages_name_);
    messages_ = Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!messages_) {
      log_debug("cannot open {}: {}", path, errno_text(errno));
      return;  // later
    }
  }
  while (!unsent_.empty()) {
    const ssize_t count = ::write(messages_.get(), unsent_.data(), unsent_.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // a full disk: later
    unsent_.erase(0, static_cast<size_t>(count));
  }
}

void FolderLink::show_life(Time now) {
  if (!arrived_ || now < beat_at_) return;
  beat_at_ = now + times_.heartbeat;
  const auto touched = folder_.touch(folder_file::arrival(task_, attempt_));
  if (!touched) log_debug("cannot show that {} lives: {}", task_.text(), touched.error().message);
}

std::optional<LauncherWord> FolderLink::next(Time now) {
  if (ending_ != Ending::kNone) return {};
  if (!failure_.empty()) return gone(Ending::kAbort, failure_);
  send();
  show_life(now);
  if (now < look_at_) return {};
  auto word = look(now);
  if (word) {
    backoff_.reset();  // the next word may be there already
    look_at_ = now;
  } else {
    look_at_ = now + backoff_.next();
    if (!leader_) look_at_ = std::min(look_at_, leader_by_);
  }
  return word;
}

std::optional<LauncherWord> FolderLink::look(Time now) {
  const auto names = folder_.names();
  const auto has = [&names](std::string_view name) { return names && std::ranges::binary_search(*names, name); };
  for (const std::string_view order : {folder_file::kAbort, folder_file::kDone}) {
    if (!has(order)) continue;
    if (auto word = look_at_order(order)) return word;
  }
  if (has(stop_name_)) {
    if (auto word = look_at_order(stop_name_)) return word;
  }
  if (arrived_ && !released_ && has(folder_file::kCluster)) {
    if (auto word = look_at_view()) return word;
  }
  return look_for_leader(has(folder_file::kLeader), now);
}

std::optional<LauncherWord> FolderLink::look_for_leader(bool there, Time now) {
  if (now < leader_at_) return {};
  leader_at_ = now + times_.heartbeat / 2;
  if (!leader_) leader_at_ = std::min(leader_at_, leader_by_);
  // A folder that cannot be looked at is like a leader that is gone: NFS has its bad moments.
  std::optional<SharedFolder::Stamp> stamp;
  if (there) {
    if (const auto found = folder_.stamp(folder_file::kLeader)) stamp = *found;
  }
  if (!leader_ && stamp) leader_.emplace(times_.lost_after, now);
  if (!leader_ && now >= leader_by_) {
    return gone(Ending::kNoLeader, fmt::format("nobody leads the job of {}", folder_.path()));
  }
  if (!leader_ || leader_->alive(stamp, now)) return {};
  return gone(Ending::kLeaderLost,
              fmt::format("nobody has touched {} for {} s: the launcher is gone", folder_.path_of(folder_file::kLeader),
                          std::chrono::duration_cast<std::chrono::seconds>(times_.lost_after).count()));
}

std::optional<LauncherWord> FolderLink::look_at_order(std::string_view name) {
  const auto text = folder_.read(name);
  if (!text) return {};
  const auto order = parse_folder_order(*text);
  if (!order || order->job != job_) return {};
  if (name == folder_file::kDone) return gone(Ending::kDone, "the job is done");
  if (name == folder_file::kAbort) {
    abort_code_ = order->code;
    return gone(Ending::kAbort, order->reason);
  }
  if (stopped_ && (stopped_at_once_ || !order->at_once)) return {};  // known
  stopped_ = true;
  stopped_at_once_ = order->at_once;
  return LauncherWord{.kind = LauncherWord::Kind::kStop, .task = task_, .at_once = order->at_once};
}

std::optional<LauncherWord> FolderLink::look_at_view() {
  const auto text = folder_.read(folder_file::kCluster);
  if (!text) return {};
  auto view = parse_cluster_view(*text);
  if (!view || view->job != job_) return {};
  // One that was written before this task came, or for an attempt before this one, is not for it.
  const Address* own = view->find(task_);
  if (own == nullptr || own->text() != own_address_) return {};
  released_ = true;
  backoff_ = Backoff(kRunningPoll);
  return LauncherWord{.kind = LauncherWord::Kind::kView, .view = std::move(*view)};
}

LauncherWord FolderLink::gone(Ending ending, std::string why) {
  ending_ = ending;
  why_ = std::move(why);
  // Where lines go to our own stderr its owner tells it there, by why().
  return LauncherWord{.kind = LauncherWord::Kind::kGone, .why = lines_ == Lines::kHere ? "" : why_};
}

FolderLink::Time FolderLink::ask_again(Time now) const {
  if (!failure_.empty()) return now;
  if (ending_ != Ending::kNone) return Time::max();
  return arrived_ ? std::min(look_at_, beat_at_) : look_at_;
}

bool FolderLink::is_full() const { return unsent_.size() > kUnsentBytesMax; }

bool FolderLink::flush(Time deadline) {
  Backoff pause;
  while (true) {
    send();
    // On NFS this is when the bytes reach the server.
    if (unsent_.empty() && (!messages_ || ::fsync(messages_.get()) == 0)) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(pause.next());
  }
}

}  // namespace pscloud

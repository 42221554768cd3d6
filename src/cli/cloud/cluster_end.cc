#include "cli/cloud/cluster_end.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "io/file_store.h"
#include "io/s3_store.h"

namespace pscloud {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLauncherLog = "launcher.log";
constexpr size_t kPiece = 1 << 20;
constexpr int kTakeDownTries = 3;
constexpr std::chrono::seconds kToEndOthers{600};
constexpr std::chrono::seconds kToEndOwn{180};
constexpr std::chrono::milliseconds kToGo{60000};  // for the machine to end under this process

Result<> copy_up(const std::string& path, const std::string& uri, FileStore& store) {
  const auto here = make_local_store();
  const auto input = TRY(here->open(path, {}));
  const auto output = TRY(store.create(uri));
  std::vector<char> piece(kPiece);
  while (const size_t got = TRY(input->read(piece))) TRY(output->write({piece.data(), got}));
  return output->commit();
}

// All that the run has written, by their names below it.
std::vector<std::string> files_below(const fs::path& run) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto each = fs::recursive_directory_iterator(run, error); !error && each != fs::end(each);
       each.increment(error)) {
    const std::string name = each->path().lexically_relative(run).string();
    std::error_code gone;
    if (each->is_regular_file(gone) && name != "lock" && name != "open") names.push_back(name);
  }
  return names;
}

}  // namespace

ClusterEnd::ClusterEnd(const CloudCharge& charge, const std::string& run_folder, KeepAlive& keep_alive)
    : charge_(charge),
      run_folder_(run_folder),
      keep_alive_(keep_alive),
      log_(::open(fmt::format("{}/{}", run_folder, kLauncherLog).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                  0600)) {}

void ClusterEnd::save_logs() {
  if (charge_.logs_to.empty()) return;
  const std::vector<std::string> names = files_below(run_folder_);
  std::vector<std::string> failed = save(names);
  // What passes has passed by then: all others were tried.
  if (!failed.empty()) failed = save(failed);
  if (!failed.empty()) say(fmt::format("not saved: {}", fmt::join(failed, ", ")));
  say(fmt::format("{} files of the run are in {}", names.size() - failed.size(), charge_.logs_to));
}

std::vector<std::string> ClusterEnd::save(const std::vector<std::string>& names) {
  const auto there = make_s3_store(charge_variables(charge_));
  const std::string run = fs::path(run_folder_).filename().string();
  std::vector<std::string> failed;
  for (const std::string& name : names) {
    keep_alive_.beat(std::chrono::steady_clock::now());
    const auto copied =
        copy_up(fmt::format("{}/{}", run_folder_, name), fmt::format("{}/{}/{}", charge_.logs_to, run, name), *there);
    if (copied) continue;
    failed.push_back(name);
    say(copied.error().message);
  }
  return failed;
}

void ClusterEnd::end_others() {
  say(fmt::format("the cluster {} is taken down", charge_.cluster));
  for (int tries = 1; tries <= kTakeDownTries; ++tries) {
    const auto left = end_other_machines(charge_, options(kToEndOthers));
    if (left && left->empty()) return;
    say(left ? fmt::format("left: {}", fmt::join(*left, "; ")) : left.error().message);
  }
}

void ClusterEnd::end_own() {
  // With the story of the end so far; there is nobody to tell the rest.
  if (!charge_.logs_to.empty()) save({kLauncherLog});
  if (const auto left = end_own_machine(charge_, options(kToEndOwn)); !left) {
    say(fmt::format("{}; the machine powers itself off", left.error().message));
    keep_alive_.end_machine();
  }
  ::poll(nullptr, 0, static_cast<int>(kToGo.count()));
}

TakeDownOptions ClusterEnd::options(std::chrono::seconds timeout) {
  TakeDownOptions options;
  options.say = [this](std::string_view line) { say(line); };
  // Asked again and again while it waits.
  options.cancelled = [this] {
    keep_alive_.beat(std::chrono::steady_clock::now());
    return false;
  };
  options.timeout = timeout;
  return options;
}

void ClusterEnd::say(std::string_view line) {
  const std::string text = fmt::format("controller: {}\n", line);
  if (log_ && ::write(log_.get(), text.data(), text.size()) < 0) log_ = Fd();
}

}  // namespace pscloud

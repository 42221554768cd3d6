#include "launch/bundle/bundle_cache.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <vector>

#include "launch/process/own_program.h"

namespace pscloud {
namespace {

namespace fs = std::filesystem;
using FileTime = fs::file_time_type;

constexpr std::string_view kReady = "ready";
constexpr std::string_view kAside = ".old-";
constexpr size_t kHashLetters = 32;

bool is_bundle_name(std::string_view name) {
  return name.size() == kHashLetters && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// "<hash>.<process>": on its way, or left by one whose connection broke.
bool is_half_made(std::string_view name) {
  return name.size() > kHashLetters && is_bundle_name(name.substr(0, kHashLetters)) && name[kHashLetters] == '.';
}

// Of an open file, so that NFS knows of it too and it ends with its process.
bool take_bundle_lock(const Fd& file, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return ::fcntl(file.get(), F_OFD_SETLK, &lock) == 0;
}

struct KnownBundle {
  fs::path folder;
  FileTime used;
};

// A launcher touches "ready" and then starts the program from there: it may do so at any moment, and is looked for once
// more when nobody can find the folder by its name any longer.
bool remove_bundle(const KnownBundle& bundle) {
  const fs::path ready = bundle.folder / kReady;
  const Fd held(::open(ready.c_str(), O_RDWR | O_CLOEXEC));
  if (!held || !take_bundle_lock(held, F_WRLCK)) return false;
  const fs::path aside =
      bundle.folder.parent_path() / fmt::format("{}{}.{}", kAside, bundle.folder.filename().string(), ::getpid());
  std::error_code error;
  if (fs::last_write_time(ready, error) != bundle.used || error) return false;
  fs::rename(bundle.folder, aside, error);
  if (error) return false;
  if (fs::last_write_time(aside / kReady, error) != bundle.used || error) {
    fs::rename(aside, bundle.folder, error);
    return false;
  }
  fs::remove_all(aside, error);
  return !error;
}

}  // namespace

Fd hold_own_bundle() {
  const fs::path folder = fs::path(own_binary()).parent_path();
  if (!is_bundle_name(folder.filename().string())) return {};
  Fd ready(::open((folder / kReady).c_str(), O_RDONLY | O_CLOEXEC));
  if (!ready || !take_bundle_lock(ready, F_RDLCK)) return {};
  return ready;
}

int prune_bundles(const std::string& cache_folder, FileTime now) {
  std::vector<KnownBundle> bundles;
  std::error_code error;
  for (fs::directory_iterator each(cache_folder, error), end; !error && each != end; each.increment(error)) {
    const std::string name = each->path().filename().string();
    std::error_code gone;
    if (is_bundle_name(name)) {
      const FileTime used = fs::last_write_time(each->path() / kReady, gone);
      if (!gone) bundles.push_back({each->path(), used});
    } else if (is_half_made(name) || name.starts_with(kAside)) {
      if (each->last_write_time(gone) < now - kBundleKept && !gone) fs::remove_all(each->path(), gone);
    }
  }
  std::ranges::sort(bundles, std::greater<>(), &KnownBundle::used);
  int removed = 0;
  for (size_t i = kBundlesKept; i < bundles.size(); ++i) {
    if (bundles[i].used < now - kBundleKept && remove_bundle(bundles[i])) ++removed;
  }
  return removed;
}

}  // namespace pscloud

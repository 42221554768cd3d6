#include "io/file_pattern.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <regex>

#include "base/mutex.h"

namespace pscloud {
namespace {

constexpr size_t kNamesShown = 5;

struct SplitPattern {
  std::string folder;  // with its last '/'
  std::string name;
};

SplitPattern split(const std::string& pattern) {
  const size_t slash = pattern.rfind('/');
  if (slash == std::string::npos) return {"", pattern};
  return {pattern.substr(0, slash + 1), pattern.substr(slash + 1)};
}

Result<std::regex> make_regex(const std::string& pattern, const std::string& name) {
  // While it compiles an expression, libstdc++ fills a cache of the locale, which all threads share, without a lock.
  static Mutex mutex;
  MutexLock lock(mutex);
  try {
    return std::regex(name, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error& error) {
    return invalid("{}: \"{}\" is no regular expression: {}", pattern, name, error.what());
  }
}

Error none_matches(const std::string& pattern, const SplitPattern& parts, const std::vector<FileInfo>& files) {
  const std::string folder = parts.folder.empty() ? "this folder" : parts.folder;
  if (files.empty()) return not_found("{}: no file matches: {} has no files", pattern, folder);
  std::vector<std::string> names;
  for (const FileInfo& file : files) {
    if (names.size() < kNamesShown) names.push_back(split(file.uri).name);
  }
  return not_found("{}: no file matches \"{}\" as a whole; {} has {}{}", pattern, parts.name, folder,
                   fmt::join(names, ", "),
                   files.size() > kNamesShown ? fmt::format(" and {} more", files.size() - kNamesShown) : "");
}

}  // namespace

bool is_file_pattern(const std::string& text) {
  return !is_web_uri(text) && split(text).name.find_first_of("^$\\*+?()[]{}|") != std::string::npos;
}

Result<std::vector<FileInfo>> find_files(FileStore& store, std::span<const std::string> patterns) {
  std::vector<FileInfo> found;
  for (const std::string& pattern : patterns) {
    const SplitPattern parts = split(pattern);
    std::optional<Error> complaint;
    if (!is_file_pattern(pattern)) {
      const auto file = store.stat(pattern);
      if (file) {
        found.push_back(*file);
        continue;
      }
      if (is_web_uri(pattern)) return file.error();
      complaint = file.error();
    }
    const auto name = make_regex(pattern, parts.name);
    const auto listed = store.list(parts.folder);
    // A list tells more about a name that is not there; where there is none, what was said of the name counts.
    if (!listed) return complaint ? *complaint : listed.error();
    const std::vector<FileInfo>& files = *listed;
    const size_t before = found.size();
    for (const FileInfo& file : files) {
      if (name && std::regex_match(split(file.uri).name, *name)) found.push_back(file);
    }
    if (found.size() > before) continue;
    const auto same = std::ranges::find(files, parts.name, [](const FileInfo& file) { return split(file.uri).name; });
    if (same == files.end()) return name ? none_matches(pattern, parts, files) : name.error();
    found.push_back(*same);
  }
  std::ranges::sort(found, {}, &FileInfo::uri);
  const auto twice = std::ranges::unique(found, {}, &FileInfo::uri);
  found.erase(twice.begin(), twice.end());
  return found;
}

}  // namespace pscloud

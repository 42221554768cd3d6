#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "io/file_store.h"

namespace pscloud {

// Files for tests. Reads give at most `read_max` bytes at a time, as networks do.
class MemoryStore final : public FileStore {
 public:
  explicit MemoryStore(std::map<std::string, std::string> files = {}, size_t read_max = 7)
      : read_max_(read_max), files_(std::move(files)) {}

  std::string get(const std::string& uri) {
    MutexLock lock(mutex_);
    return files_.at(uri);
  }

  void put(const std::string& uri, std::string text) {
    MutexLock lock(mutex_);
    files_[uri] = std::move(text);
  }

  Result<FileInfo> stat(const std::string& uri) override {
    MutexLock lock(mutex_);
    const auto found = files_.find(uri);
    if (found == files_.end()) return not_found("{}: no such file", uri);
    return info_of(*found);
  }
  Result<std::vector<FileInfo>> list(const std::string& folder) override {
    MutexLock lock(mutex_);
    std::vector<FileInfo> found;
    const std::string prefix = folder.empty() || folder.ends_with('/') ? folder : folder + "/";
    for (const auto& file : files_) {
      const bool inside = file.first.starts_with(prefix) && file.first.find('/', prefix.size()) == std::string::npos;
      if (inside) found.push_back(info_of(file));
    }
    return found;
  }
  Result<std::vector<std::string>> list_folders(const std::string& folder) override {
    MutexLock lock(mutex_);
    std::vector<std::string> found;
    const std::string prefix = folder.empty() || folder.ends_with('/') ? folder : folder + "/";
    for (const auto& file : files_) {
      const size_t slash = file.first.starts_with(prefix) ? file.first.find('/', prefix.size()) : std::string::npos;
      if (slash == std::string::npos) continue;
      const std::string name = file.first.substr(0, slash + 1);
      if (found.empty() || found.back() != name) found.push_back(name);
    }
    return found;
  }
  Result<std::unique_ptr<Input>> open(const std::string& uri, ByteRange range) override {
    MutexLock lock(mutex_);
    const auto found = files_.find(uri);
    if (found == files_.end()) return not_found("{}: no such file", uri);
    const std::string version = info_of(*found).version;
    if (!range.version.empty() && version != range.version) return version_changed(uri, range.version, version);
    const uint64_t begin = std::min<uint64_t>(range.begin, found->second.size());
    return std::make_unique<TextInput>(found->second.substr(begin, range.end - begin), read_max_);
  }
  Result<std::unique_ptr<Output>> create(const std::string& uri) override {
    return std::make_unique<TextOutput>(*this, uri);
  }
  Result<> remove(const std::string& uri) override {
    MutexLock lock(mutex_);
    files_.erase(uri);
    return {};
  }

 private:
  static FileInfo info_of(const std::pair<const std::string, std::string>& file) {
    return {.uri = file.first,
            .size = file.second.size(),
            .version = std::to_string(std::hash<std::string>()(file.second)),
            .version_is_global = true};
  }

  class TextInput final : public Input {
   public:
    TextInput(std::string text, size_t read_max) : text_(std::move(text)), read_max_(read_max) {}
    Result<size_t> read(std::span<char> out) override {
      const size_t count = text_.copy(out.data(), std::min(out.size(), read_max_), at_);
      at_ += count;
      return count;
    }

   private:
    std::string text_;
    size_t read_max_;
    size_t at_ = 0;
  };
  class TextOutput final : public Output {
   public:
    TextOutput(MemoryStore& store, std::string uri) : store_(store), uri_(std::move(uri)) {}
    Result<> write(std::string_view bytes) override {
      text_ += bytes;
      return {};
    }
    Result<> commit() override {
      MutexLock lock(store_.mutex_);
      store_.files_[uri_] = text_;
      return {};
    }

   private:
    MemoryStore& store_;
    std::string uri_;
    std::string text_;
  };

  const size_t read_max_;
  Mutex mutex_;
  std::map<std::string, std::string> files_ GUARDED_BY(mutex_);
};

}  // namespace pscloud

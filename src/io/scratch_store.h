#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/mutex.h"
#include "io/file_store.h"

namespace pscloud {

// Files of this process alone, which are gone when it ends, however it ends: they lie in one file that has no name.
// What is replaced or never committed keeps its room. Thread-safe.
class ScratchStore final : public FileStore {
 public:
  // On the disk of this folder, of which it takes half of what is free now, at most.
  static Result<std::unique_ptr<ScratchStore>> make(const std::string& folder);

  Result<FileInfo> stat(const std::string& uri) override;
  Result<std::unique_ptr<Input>> open(const std::string& uri, ByteRange range) override;
  // To write is kUnavailable when there is no room.
  Result<std::unique_ptr<Output>> create(const std::string& uri) override;
  Result<> remove(const std::string& uri) override;
  Result<std::vector<FileInfo>> list(const std::string& folder) override;
  Result<std::vector<std::string>> list_folders(const std::string& folder) override;

 private:
  struct Extent {
    uint64_t offset = 0;
    uint64_t size = 0;
  };
  using Extents = std::vector<Extent>;
  class ScratchInput;
  class ScratchOutput;

  ScratchStore(Fd fd, std::string folder, uint64_t free_min)
      : fd_(std::move(fd)), folder_(std::move(folder)), free_min_(free_min) {}
  Result<Extents> find(const std::string& uri) EXCLUDES(mutex_);
  Result<Extent> append(std::string_view bytes) EXCLUDES(mutex_);
  void commit(const std::string& uri, Extents extents) EXCLUDES(mutex_);

  const Fd fd_;
  const std::string folder_;
  const uint64_t free_min_;  // bytes that are left to others
  Mutex mutex_;
  uint64_t size_ GUARDED_BY(mutex_) = 0;
  std::map<std::string, Extents> files_ GUARDED_BY(mutex_);
};

}  // namespace pscloud

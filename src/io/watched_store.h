#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/file_store.h"

namespace pscloud {

// Another store, borrowed, that tells how much is read of its files, as they are stored: to count it, or to end it, by
// an error. Told by whatever thread reads. And nobody reads more than `ahead_bytes_max` ahead of it.
class WatchedStore final : public FileStore {
 public:
  using OnRead = std::function<Result<>(size_t bytes)>;
  WatchedStore(FileStore& store, OnRead on_read, uint64_t ahead_bytes_max = ByteRange{}.ahead_bytes_max)
      : store_(store), on_read_(std::move(on_read)), ahead_bytes_max_(ahead_bytes_max) {}

  Result<FileInfo> stat(const std::string& uri) override { return store_.stat(uri); }
  Result<std::vector<FileInfo>> list(const std::string& folder) override { return store_.list(folder); }
  Result<std::vector<std::string>> list_folders(const std::string& folder) override {
    return store_.list_folders(folder);
  }
  Result<std::unique_ptr<Input>> open(const std::string& uri, ByteRange range) override {
    range.ahead_bytes_max = std::min(range.ahead_bytes_max, ahead_bytes_max_);
    return std::make_unique<WatchedInput>(TRY(store_.open(uri, std::move(range))), on_read_);
  }
  Result<std::unique_ptr<Output>> create(const std::string& uri) override { return store_.create(uri); }
  Result<> check_create(const std::string& uri) override { return store_.check_create(uri); }
  Result<> remove(const std::string& uri) override { return store_.remove(uri); }
  Result<> remove_unfinished(const std::string& uri_begin) override { return store_.remove_unfinished(uri_begin); }

 private:
  class WatchedInput final : public Input {
   public:
    WatchedInput(std::unique_ptr<Input> input, const OnRead& on_read) : input_(std::move(input)), on_read_(on_read) {}
    Result<size_t> read(std::span<char> out) override {
      const size_t bytes = TRY(input_->read(out));
      TRY(on_read_(bytes));
      return bytes;
    }

   private:
    std::unique_ptr<Input> input_;
    const OnRead& on_read_;
  };

  FileStore& store_;
  const OnRead on_read_;
  const uint64_t ahead_bytes_max_;
};

}  // namespace pscloud

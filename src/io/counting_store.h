#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/file_store.h"

namespace pscloud {

// Another store, borrowed, that counts what is read of its files.
class CountingStore final : public FileStore {
 public:
  explicit CountingStore(FileStore& store) : store_(store) {}

  uint64_t bytes_read() const { return bytes_; }

  Result<FileInfo> stat(const std::string& uri) override { return store_.stat(uri); }
  Result<std::vector<FileInfo>> list(const std::string& folder) override { return store_.list(folder); }
  Result<std::unique_ptr<Input>> open(const std::string& uri, ByteRange range) override {
    return std::make_unique<CountingInput>(TRY(store_.open(uri, range)), bytes_);
  }
  Result<std::unique_ptr<Output>> create(const std::string& uri) override { return store_.create(uri); }

 private:
  class CountingInput final : public Input {
   public:
    CountingInput(std::unique_ptr<Input> input, std::atomic<uint64_t>& bytes)
        : input_(std::move(input)), bytes_(bytes) {}
    Result<size_t> read(std::span<char> out) override {
      const size_t size = TRY(input_->read(out));
      bytes_ += size;
      return size;
    }

   private:
    std::unique_ptr<Input> input_;
    std::atomic<uint64_t>& bytes_;
  };

  FileStore& store_;
  std::atomic<uint64_t> bytes_ = 0;
};

}  // namespace pscloud

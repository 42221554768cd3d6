#include "io/watched_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pscloud {
namespace {

// Remembers how much may be read ahead of each file that is opened.
class OpenedStore final : public FileStore {
 public:
  Result<FileInfo> stat(const std::string& uri) override { return not_found("{}", uri); }
  Result<std::vector<FileInfo>> list(const std::string&) override { return std::vector<FileInfo>(); }
  Result<std::vector<std::string>> list_folders(const std::string&) override { return std::vector<std::string>(); }
  Result<std::unique_ptr<Input>> open(const std::string& uri, ByteRange range) override {
    ahead.push_back(range.ahead_bytes_max);
    return not_found("{}", uri);
  }
  Result<std::unique_ptr<Output>> create(const std::string& uri) override { return not_found("{}", uri); }

  std::vector<uint64_t> ahead;
};

TEST(WatchedStore, BoundsWhatIsReadAhead) {
  OpenedStore opened;
  const auto ignore = [](size_t) { return Result<>(); };
  WatchedStore bounded(opened, ignore, 1000);
  EXPECT_FALSE(bounded.open("f", {}));
  EXPECT_FALSE(bounded.open("f", {.ahead_bytes_max = 10}));
  WatchedStore free(opened, ignore);
  EXPECT_FALSE(free.open("f", {.ahead_bytes_max = 5000}));
  EXPECT_THAT(opened.ahead, testing::ElementsAre(1000, 10, 5000));
}

}  // namespace
}  // namespace pscloud

#include "io/scratch_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

namespace pscloud {
namespace {

class ScratchStoreTest : public testing::Test {
 protected:
  ScratchStoreTest() : folder_(testing::TempDir() + "scratch_store_test") {
    std::filesystem::create_directories(folder_);
    store_ = ScratchStore::make(folder_).value();
  }
  ~ScratchStoreTest() override { std::filesystem::remove_all(folder_); }

  std::string read(const std::string& uri, ByteRange range = {}) {
    return read_all(**store_->open(uri, std::move(range)), 1 << 20).value();
  }

  std::string folder_;
  std::unique_ptr<ScratchStore> store_;
};

TEST_F(ScratchStoreTest, FilesThatAreWrittenAtOnceDoNotMix) {
  const auto a = store_->create("a").value();
  const auto b = store_->create("b").value();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(a->write("aa"));
    ASSERT_TRUE(b->write("b"));
  }
  EXPECT_EQ(store_->open("a", {}).error().code, Code::kNotFound);  // not before it is whole
  ASSERT_TRUE(a->commit());
  ASSERT_TRUE(b->commit());
  EXPECT_EQ(read("a"), "aaaaaa");
  EXPECT_EQ(read("b"), "bbb");
  EXPECT_EQ(read("a", {.begin = 3}), "aaa");
  EXPECT_EQ(read("b", {.begin = 1, .end = 2}), "b");
  EXPECT_EQ(store_->stat("a")->size, 6u);
}

TEST_F(ScratchStoreTest, LastWriterWinsAndVersionsTell) {
  const auto put = [&](const std::string& text) {
    const auto output = store_->create("f").value();
    ASSERT_TRUE(output->write(text));
    ASSERT_TRUE(output->commit());
  };
  put("old");
  const std::string version = store_->stat("f")->version;
  put("new");
  EXPECT_EQ(read("f"), "new");
  EXPECT_EQ(store_->open("f", {.version = version}).error().code, Code::kFailed);
  ASSERT_TRUE(store_->remove("f"));
  EXPECT_EQ(store_->stat("f").error().code, Code::kNotFound);
}

TEST_F(ScratchStoreTest, ThreadsShareIt) {
  {
    std::vector<std::jthread> threads;
    for (char letter = 'a'; letter < 'e'; ++letter) {
      threads.emplace_back([this, letter] {
        for (int i = 0; i < 100; ++i) {
          const auto output = store_->create(std::string(1, letter)).value();
          for (int k = 0; k < 10; ++k) EXPECT_TRUE(output->write(std::string(10, letter)));
          EXPECT_TRUE(output->commit());
          EXPECT_EQ(read(std::string(1, letter)), std::string(100, letter));
        }
      });
    }
  }
}

TEST_F(ScratchStoreTest, NothingOfItHasAName) {
  const auto output = store_->create("f").value();
  ASSERT_TRUE(output->write("text"));
  ASSERT_TRUE(output->commit());
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST(ScratchStore, SaysWhichFolderItCannotUse) {
  const auto store = ScratchStore::make("/nowhere/at/all");
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().message, testing::HasSubstr("/nowhere/at/all"));
}

}  // namespace
}  // namespace pscloud

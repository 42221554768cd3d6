#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "io/file_store.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

class LocalStoreTest : public testing::Test {
 protected:
  LocalStoreTest() {
    std::string name = testing::TempDir() + "pscloud_store_XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~LocalStoreTest() override { std::filesystem::remove_all(folder_); }

  void put(const std::string& name, std::string_view text) {
    const auto output = store_->create(folder_ + "/" + name).value();
    ASSERT_TRUE(output->write(text));
    ASSERT_TRUE(output->commit());
  }
  std::string get(const std::string& name, uint64_t begin = 0) {
    return read_all(*store_->open(folder_ + "/" + name, {.begin = begin}).value(), 1000).value();
  }

  std::unique_ptr<FileStore> store_ = make_local_store();
  std::string folder_;
};

TEST_F(LocalStoreTest, WhatIsWrittenIsReadFromAnyPlaceOn) {
  put("new/folder/file", "0123456789");
  EXPECT_EQ(get("new/folder/file"), "0123456789");
  EXPECT_EQ(get("new/folder/file", 7), "789");
  EXPECT_EQ(get("new/folder/file", 10), "");
  const auto range = store_->open("file://" + folder_ + "/new/folder/file", {.begin = 5, .end = 8}).value();
  EXPECT_EQ(read_all(*range, 1000).value(), "567");
  EXPECT_EQ(store_->stat(folder_ + "/new/folder/file").value().size, 10u);
}

TEST_F(LocalStoreTest, AFileThatIsNotCommittedLeavesNothing) {
  put("file", "old");
  {
    const auto output = store_->create(folder_ + "/file").value();
    ASSERT_TRUE(output->write("new"));
    EXPECT_EQ(get("file"), "old");
    EXPECT_EQ(store_->list(folder_).value().size(), 1u);
  }
  EXPECT_EQ(get("file"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(LocalStoreTest, WhetherAFileCanBeWrittenIsToldBeforeAndLeavesNothing) {
  EXPECT_TRUE(store_->check_create(folder_ + "/deep/er/file"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/deep"));
  put("file", "old");
  EXPECT_TRUE(store_->check_create(folder_ + "/file"));
  EXPECT_EQ(get("file"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
  EXPECT_EQ(store_->check_create(folder_ + "/file/x/y").error().message, folder_ + "/file: not a directory");
  EXPECT_THAT(store_->check_create(folder_ + "/file/x").error().message, HasSubstr(folder_ + "/file"));
  EXPECT_THAT(store_->check_create(folder_).error().message, HasSubstr("is a folder, not a file"));
}

TEST_F(LocalStoreTest, WhoAsksWhetherItCanBeWrittenIsNotInTheWayOfAnother) {
  std::atomic<int> failures = 0;
  for (int round = 0; round < 50; ++round) {
    const std::string file = folder_ + "/new" + std::to_string(round) + "/folder/file";
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const auto store = make_local_store();
        const auto can = store->check_create(file);
        const auto output = store->create(file + std::to_string(i));
        if (!can || !output || !(*output)->commit()) ++failures;
      });
    }
  }
  EXPECT_EQ(failures, 0);
}

TEST_F(LocalStoreTest, TwoStoresThatWriteOneFileDoNotMixTheirBytes) {
  const auto other = make_local_store();
  const auto first = store_->create(folder_ + "/file").value();
  const auto second = other->create(folder_ + "/file").value();
  ASSERT_TRUE(first->write("first"));
  ASSERT_TRUE(second->write("2"));
  ASSERT_TRUE(first->commit());
  EXPECT_EQ(get("file"), "first");
  ASSERT_TRUE(second->commit());
  EXPECT_EQ(get("file"), "2");
}

TEST_F(LocalStoreTest, AChangedFileHasAnotherVersion) {
  put("file", "one");
  const std::string before = store_->stat(folder_ + "/file").value().version;
  put("file", "two");
  EXPECT_NE(store_->stat(folder_ + "/file").value().version, before);
}

TEST_F(LocalStoreTest, AListHasTheFilesOfAFolderByName) {
  put("b", "22");
  put("a", "1");
  put("below/c", "");
  std::filesystem::create_symlink("nowhere", folder_ + "/dangling");
  for (const std::string& folder : {folder_, folder_ + "/"}) {
    const auto files = store_->list(folder).value();
    ASSERT_EQ(files.size(), 2u);
    EXPECT_EQ(files[0].uri, folder_ + "/a");
    EXPECT_EQ(files[1].uri, folder_ + "/b");
    EXPECT_EQ(files[1].size, 2u);
  }
}

TEST_F(LocalStoreTest, OtherStoresAreNotTakenForFolders) {
  for (const Error& error : {store_->create("s3://bucket/model").error(), store_->open("s3://bucket/model", {}).error(),
                             store_->stat("s3://bucket/model").error()}) {
    EXPECT_EQ(error.code, Code::kInvalid);
    EXPECT_EQ(error.message, "s3://bucket/model: no store for s3:// here");
  }
}

TEST_F(LocalStoreTest, WhatIsNotThereOrNoFileIsNamed) {
  const std::string absent = folder_ + "/absent";
  for (const Error& error :
       {store_->stat(absent).error(), store_->open(absent, {}).error(), store_->list(absent).error()}) {
    EXPECT_EQ(error.code, Code::kNotFound);
    EXPECT_EQ(error.message, absent + ": no such file or directory");
  }
  EXPECT_THAT(store_->open(folder_, {}).error().message, HasSubstr("is a folder"));
  EXPECT_THAT(store_->create(folder_).error().message, HasSubstr("is a folder"));
  put("file", "");
  EXPECT_EQ(store_->create(folder_ + "/file/below").error().message, folder_ + "/file: not a directory");
}

TEST_F(LocalStoreTest, AFileThatIsRemovedIsNotThere) {
  put("file", "text");
  ASSERT_TRUE(store_->remove(folder_ + "/file"));
  EXPECT_TRUE(store_->list(folder_).value().empty());
  EXPECT_TRUE(store_->remove(folder_ + "/file"));  // it is gone, as was asked for
  EXPECT_FALSE(store_->remove(folder_));
}

TEST_F(LocalStoreTest, WhatAKillHasLeftIsRemoved) {
  put("part-1", "whole");
  put("other", "whole");
  // As the process that wrote them would leave them.
  const auto begun = store_->create(folder_ + "/part-2").value();
  const auto other = store_->create(folder_ + "/other").value();
  put(".part-3.txt", "hidden by the user");
  ASSERT_TRUE(store_->remove_unfinished(folder_ + "/part-"));
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) names.insert(entry.path().filename());
  EXPECT_EQ(names.size(), 4u);  // the one that was begun of "other" too
  EXPECT_TRUE(names.contains(".part-3.txt"));
  EXPECT_FALSE(begun->commit());
  EXPECT_TRUE(other->commit());
}

}  // namespace
}  // namespace pscloud

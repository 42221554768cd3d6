#include "launch/bundle/shipped_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace pscloud {
namespace {

namespace fs = std::filesystem;

class ShippedFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "pscloud-shipped-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    write("main.py", "print(1)");
    write("lib/deep/a.py", "a = 1");
    write("empty", "");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  static std::string read(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // As a launcher and a host do it between them.
  void ship(FileCache& cache, const std::vector<ShippedFile>& files) {
    for (const ShippedFile& file : files) {
      if (cache.has(file)) continue;
      ++sent_;
      EXPECT_TRUE(read_pieces(file.path, [&](std::string_view piece, bool last) {
        return cache.put(file.hash, piece, last);
      })) << file.name;
    }
  }

  fs::path folder_;
  int sent_ = 0;
};

TEST_F(ShippedFilesTest, FilesAndWholeFoldersArriveOnce) {
  fs::permissions(folder_ / "main.py", fs::perms::owner_all);
  const auto files = list_shipped({folder_ / "main.py", folder_ / "lib/", folder_ / "empty"});
  ASSERT_TRUE(files) << files.error().message;
  ASSERT_EQ(files->size(), 3u);
  FileCache cache((folder_ / "cache").string());
  ship(cache, *files);
  ship(cache, *files);
  EXPECT_EQ(sent_, 3);
  for (const char* task : {"worker-0", "worker-1"}) {
    ASSERT_TRUE(cache.place(*files, (folder_ / task).string()));
    EXPECT_EQ(read(folder_ / task / "main.py"), "print(1)");
    EXPECT_EQ(read(folder_ / task / "lib/deep/a.py"), "a = 1");
    EXPECT_EQ(read(folder_ / task / "empty"), "");
  }
}

TEST_F(ShippedFilesTest, LargeFilesComeInPieces) {
  std::string text(9 << 20, 'x');
  for (size_t i = 0; i < text.size(); i += 1000) text[i] = static_cast<char>('a' + i / 1000 % 26);
  write("large", text);
  const auto files = list_shipped({folder_ / "large"});
  ASSERT_TRUE(files);
  FileCache cache((folder_ / "cache").string());
  ship(cache, *files);
  ASSERT_TRUE(cache.place(*files, (folder_ / "t").string()));
  EXPECT_EQ(read(folder_ / "t/large"), text);
}

TEST_F(ShippedFilesTest, WhatATaskWritesToItsFileIsItsOwn) {
  write("run.sh", "#!/bin/sh");
  fs::permissions(folder_ / "run.sh", fs::perms::owner_all);
  const auto files = list_shipped({folder_ / "main.py", folder_ / "run.sh"});
  ASSERT_TRUE(files);
  FileCache cache((folder_ / "cache").string());
  ship(cache, *files);
  ASSERT_TRUE(cache.place(*files, (folder_ / "t0").string()));
  ASSERT_TRUE(cache.place(*files, (folder_ / "t1").string()));
  const std::string before = read(folder_ / "t1/main.py");
  std::ofstream(folder_ / "t0/main.py", std::ios::app) << "more";
  EXPECT_EQ(read(folder_ / "t1/main.py"), before);
  EXPECT_TRUE(cache.has(files->front()));
  EXPECT_EQ(fs::status(folder_ / "t0/main.py").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(fs::status(folder_ / "t0/run.sh").permissions(), fs::perms::owner_all);
}

TEST_F(ShippedFilesTest, WhatWasChangedInTheCacheIsSentAgain) {
  const auto files = list_shipped({folder_ / "main.py"});
  ASSERT_TRUE(files);
  FileCache cache((folder_ / "cache").string());
  ship(cache, *files);
  std::ofstream(folder_ / "cache" / files->front().hash) << "print(2)";
  EXPECT_FALSE(cache.has(files->front()));
}

TEST_F(ShippedFilesTest, WhatNobodyAsksForAnyMoreIsRemoved) {
  const auto files = list_shipped({folder_ / "main.py", folder_ / "empty"});
  ASSERT_TRUE(files);
  FileCache cache((folder_ / "cache").string());
  ship(cache, *files);
  ASSERT_TRUE(cache.place(*files, (folder_ / "t").string()));
  const auto before = fs::file_time_type::clock::now() - std::chrono::days(1);
  for (const auto& each : fs::directory_iterator(folder_ / "cache")) {
    fs::last_write_time(each, before - std::chrono::days(1));
  }
  EXPECT_TRUE(cache.has(files->front()));
  cache.prune(before);
  EXPECT_TRUE(cache.has(files->front()));
  EXPECT_FALSE(cache.has(files->back()));
  EXPECT_TRUE(fs::exists(folder_ / "t/empty"));
}

TEST_F(ShippedFilesTest, WhatIsNotThereAndTwoOfOneNameAreRefused) {
  EXPECT_EQ(list_shipped({folder_ / "no"}).error().code, Code::kNotFound);
  write("other/main.py", "");
  EXPECT_EQ(list_shipped({folder_ / "main.py", folder_ / "other/main.py"}).error().code, Code::kInvalid);
}

TEST_F(ShippedFilesTest, OnlyNamesWithinTheFolderAndTrueHashesAreTaken) {
  for (const char* name : {"/etc/passwd", "../x", "a/../../x", "", "."}) {
    ShippedFile file{.name = name, .hash = std::string(32, 'a'), .bytes = 0, .executable = false, .path = {}};
    const auto value = JsonValue::parse(shipped_json({file}));
    ASSERT_TRUE(value);
    EXPECT_FALSE(parse_shipped(*value)) << name;
  }
  FileCache cache((folder_ / "cache").string());
  EXPECT_FALSE(cache.put("../../x", "", true));
  EXPECT_EQ(cache.put(std::string(32, 'a'), "not this", true).error().code, Code::kCorrupt);
}

}  // namespace
}  // namespace pscloud

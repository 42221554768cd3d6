#include "launch/bundle/bundle_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace pscloud {
namespace {

namespace fs = std::filesystem;
using testing::UnorderedElementsAre;

class BundleCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "pscloud-bundles-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string hash(char letter) { return std::string(32, letter); }

  // Used so many days ago.
  void make(const std::string& name, int days, bool ready = true) {
    fs::create_directory(folder_ / name);
    std::ofstream(folder_ / name / "pscloud") << "program";
    const fs::path dated = ready ? folder_ / name / "ready" : folder_ / name;
    if (ready) std::ofstream(dated).flush();
    fs::last_write_time(dated, now_ - std::chrono::days(days));
  }

  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& each : fs::directory_iterator(folder_)) found.insert(each.path().filename().string());
    return found;
  }

  fs::path folder_;
  const fs::file_time_type now_ = fs::file_time_type::clock::now();
};

TEST_F(BundleCacheTest, TheNewestAndThoseUsedLatelyStay) {
  for (const char letter : {'a', 'b', 'c', 'd'}) make(hash(letter), 0);
  make(hash('e'), 2);
  make(hash('f'), 30);
  make("files", 30, false);  // is none of them
  EXPECT_EQ(prune_bundles(folder_.string(), now_), 2);
  EXPECT_THAT(names(), UnorderedElementsAre(hash('a'), hash('b'), hash('c'), hash('d'), "files"));
  EXPECT_EQ(prune_bundles(folder_.string(), now_ + std::chrono::days(9)), 1);
  EXPECT_EQ(names().size(), 4u);
}

TEST_F(BundleCacheTest, WhatIsHeldStays) {
  for (const char letter : {'a', 'b', 'c', 'd', 'e'}) make(hash(letter), 100 + letter);
  const Fd held(::open((folder_ / hash('e') / "ready").c_str(), O_RDONLY | O_CLOEXEC));
  struct flock lock {};
  lock.l_type = F_RDLCK;
  ASSERT_EQ(::fcntl(held.get(), F_OFD_SETLK, &lock), 0);
  EXPECT_EQ(prune_bundles(folder_.string(), now_), 1);
  EXPECT_THAT(names(), UnorderedElementsAre(hash('a'), hash('b'), hash('c'), hash('e')));
}

TEST_F(BundleCacheTest, WhatWasLeftHalfMadeGoesAfterADay) {
  make(hash('a') + ".77", 0, false);
  make(hash('a') + ".78", 2, false);
  make(".old-" + hash('b') + ".79", 2, false);
  make(hash('c'), 2, false);  // never finished, and called as if: a launcher may be at it
  EXPECT_EQ(prune_bundles(folder_.string(), now_), 0);
  EXPECT_THAT(names(), UnorderedElementsAre(hash('a') + ".77", hash('c')));
}

TEST_F(BundleCacheTest, AFolderThatIsNotThereIsNoFault) {
  EXPECT_EQ(prune_bundles((folder_ / "none").string(), now_), 0);
}

}  // namespace
}  // namespace pscloud

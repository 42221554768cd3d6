#include "launch/bundle/bundle.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>

#include "launch/bundle/bundle_cache.h"
#include "launch/process/own_program.h"
#include "launch/process/processes.h"
#include "launch/process/spawn.h"

namespace pscloud {
namespace {

namespace fs = std::filesystem;

// The exit code of a command, run without any library path.
int exit_of(std::vector<std::string> command) {
  SpawnSpec process;
  process.arguments = std::move(command);
  process.program = *find_program(process.arguments.front(), "/usr/bin:/bin");
  process.environment = {"PATH=/usr/bin:/bin"};
  const auto pid = spawn(process);
  EXPECT_TRUE(pid) << pid.error().message;
  int status = -1;
  if (pid) ::waitpid(*pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::vector<std::string> operator+(std::vector<std::string> words, const std::string& word) {
  words.push_back(word);
  return words;
}

class BundleTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "pscloud-bundle-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST(OwnProgram, RunsThisVeryProgram) {
  EXPECT_EQ(exit_of(own_program() + "--gtest_filter=NoSuchTest*"), 0);
  EXPECT_NE(own_binary().find('/'), std::string::npos);
}

// Also run by the next, out of a bundle.
TEST(OwnBundle, IsHeldWhereThisProgramRunsFromOne) {
  const fs::path folder = fs::path(own_binary()).parent_path();
  const bool from_one = fs::exists(folder / "ready");
  EXPECT_EQ(static_cast<bool>(hold_own_bundle()), from_one);
  // What it would send to others is the same once more.
  if (from_one) {
    EXPECT_EQ(own_bundle().value().hash, folder.filename());
  }
}

TEST_F(BundleTest, RunsFromItsOwnFolderHoldsItAndKnowsHowToRunAgain) {
  const auto bundle = own_bundle();
  ASSERT_TRUE(bundle) << bundle.error().message;
  const fs::path copy = folder_ / bundle->hash;
  fs::create_directory(copy);
  ASSERT_TRUE(copy_bundle(*bundle, copy.string()));
  std::ofstream(copy / "ready").flush();
  // This very test's neighbours, out of the bundle: one starts itself once more.
  EXPECT_EQ(exit_of(bundle_command(*bundle, copy.string()) + "--gtest_filter=OwnProgram.*:OwnBundle.*"), 0);
}

TEST_F(BundleTest, IsATarFileTheSystemsTarReads) {
  const auto bundle = own_bundle();
  ASSERT_TRUE(bundle);
  const auto tar = bundle_tar(*bundle);
  ASSERT_TRUE(tar);
  const std::string file = (folder_ / "bundle.tar").string();
  std::ofstream(file, std::ios::binary) << *tar;
  EXPECT_EQ(exit_of({"tar", "-xf", file, "-C", folder_.string()}), 0);
  for (const Bundle::File& each : bundle->files) {
    EXPECT_LE(fs::file_size(folder_ / each.name), fs::file_size(each.path)) << each.name;
  }
  // What debuggers read stays here.
  EXPECT_LT(fs::file_size(folder_ / "pscloud"), fs::file_size(own_binary()));
  EXPECT_EQ(exit_of(bundle_command(*bundle, folder_.string()) + "--gtest_filter=NoSuchTest*"), 0);
}

TEST_F(BundleTest, HasOneHashForOneBuild) {
  const auto first = own_bundle(), second = own_bundle();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->hash, second->hash);
  EXPECT_EQ(first->hash.size(), 32u);
}

}  // namespace
}  // namespace pscloud

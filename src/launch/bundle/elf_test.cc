#include "launch/bundle/elf.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace pscloud {
namespace {

std::string this_program() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(Elf, AProgramRunsWithoutWhatDebuggersRead) {
  const std::string program = this_program();
  const std::string less = without_debugging(program);
  EXPECT_LT(less.size(), program.size());
  EXPECT_EQ(without_debugging(less), less);
  const std::string path = testing::TempDir() + "elf_test_program";
  std::ofstream(path, std::ios::binary) << less;
  ::chmod(path.c_str(), 0700);
  EXPECT_EQ(std::system((path + " --gtest_list_tests > /dev/null").c_str()), 0);
  std::remove(path.c_str());
}

TEST(Elf, KnowsTheLoader) {
  EXPECT_TRUE(elf_loader(this_program()).value().starts_with("/lib"));
  EXPECT_FALSE(elf_loader("#!/bin/sh\n"));
}

TEST(Elf, OtherBytesStayAsTheyAre) {
  const std::string script = "#!/bin/sh\nexit 0\n";
  EXPECT_EQ(without_debugging(script), script);
  std::string cut = this_program().substr(0, 100);
  EXPECT_EQ(without_debugging(cut), cut);
}

}  // namespace
}  // namespace pscloud

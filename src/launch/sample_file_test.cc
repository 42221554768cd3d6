#include "launch/sample_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

namespace pscloud {
namespace {

namespace fs = std::filesystem;

class SampleFileTest : public testing::Test {
 protected:
  SampleFileTest() { fs::create_directories(folder_); }
  ~SampleFileTest() override { fs::remove_all(folder_); }

  std::string text() const {
    std::ostringstream all;
    all << std::ifstream(path_).rdbuf();
    return all.str();
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / fmt::format("samples-{}", ::getpid());
  const std::string path_ = (folder_ / "samples.csv").string();
};

TEST_F(SampleFileTest, RowsAreAppendedAndOnlyTheUserMayReadThem) {
  { EXPECT_TRUE(SampleFile(path_).append("1,worker-0,loss,0.5\n")); }
  { EXPECT_TRUE(SampleFile(path_).append("2,worker-0,loss,0.4\n")); }
  EXPECT_EQ(text(), "1,worker-0,loss,0.5\n2,worker-0,loss,0.4\n");
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(SampleFileTest, ALongRunKeepsItsWholeCourseInABoundedFile) {
  constexpr uint64_t kMax = 100000;
  SampleFile file(path_, kMax);
  const int samples = 50000;
  for (int i = 0; i < samples; ++i) {
    ASSERT_TRUE(file.append(fmt::format("{},worker-0,loss,{}\n{},server-1,cpu_percent,{}\n", i, i, i, i)));
    if (i % 1000 == 0) {
      ASSERT_LE(fs::file_size(path_), kMax + 100);
    }
  }
  std::map<std::string, std::vector<int>> times;
  std::istringstream lines(text());
  for (std::string line; std::getline(lines, line);) {
    const size_t comma = line.find(',');
    times[line.substr(comma, line.rfind(',') - comma)].push_back(std::stoi(line));
    EXPECT_EQ(line.substr(0, comma), line.substr(line.rfind(',') + 1)) << "a line was torn";
  }
  ASSERT_EQ(times.size(), 2u);
  for (const auto& [series, of] : times) {
    EXPECT_TRUE(std::ranges::is_sorted(of)) << series;
    EXPECT_EQ(of.front(), 0) << series;
    EXPECT_EQ(of.back(), samples - 1) << series;
    EXPECT_GT(of.size(), 400u) << series;
    for (size_t i = 1; i < of.size(); ++i) ASSERT_LT(of[i] - of[i - 1], samples / 20) << "a hole at " << of[i];
  }
}

TEST_F(SampleFileTest, AFolderThatIsNotThereIsAnErrorThatNamesTheFile) {
  const auto appended = SampleFile("/nowhere/samples.csv").append("1,a,b,2\n");
  ASSERT_FALSE(appended);
  EXPECT_EQ(appended.error().code, Code::kUnavailable);
  EXPECT_NE(appended.error().message.find("/nowhere/samples.csv"), std::string::npos);
}

}  // namespace
}  // namespace pscloud

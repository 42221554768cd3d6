#include "console/sample_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

namespace pscloud {
namespace {

TEST(SampleFile, ALineIsTimeTaskNameAndValue) {
  const auto sample = parse_sample("1700000000123,worker-0,loss,-1.5e-3");
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->unix_ms, 1700000000123);
  EXPECT_EQ(sample->task, "worker-0");
  EXPECT_EQ(sample->name, "loss");
  EXPECT_EQ(sample->value, -1.5e-3);
}

TEST(SampleFile, OtherLinesAreNone) {
  for (const char* line : {"", ",,,", "1,2,3", "x,worker-0,loss,1", "1,worker-0,loss,", "1,worker-0,loss,nan",
                           "1,worker-0,loss,1 ", "1,worker-0,loss,1,2", "-1,worker-0,loss,1"}) {
    EXPECT_FALSE(parse_sample(line)) << line;
  }
  EXPECT_FALSE(parse_sample("1,w," + std::string(2000, 'x') + ",1"));
}

class SampleFileTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/pscloud-samples-XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = folder_ + "/samples.csv";
    std::ofstream file(path_);
    for (int64_t i = 0; i < 200000; ++i) file << 1000 * i << ",worker-" << i % 3 << ",loss," << i << "\n";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::vector<int64_t> read(uint64_t begin, uint64_t end) const {
    std::vector<int64_t> values;
    read_samples(path_, begin, end,
                 [&](const Sample& sample) { values.push_back(static_cast<int64_t>(sample.value)); });
    return values;
  }

  std::string folder_;
  std::string path_;
};

TEST_F(SampleFileTest, PartsOfAFileGiveEachLineOnce) {
  const uint64_t bytes = std::filesystem::file_size(path_);
  const std::vector<int64_t> all = read(0, bytes);
  ASSERT_EQ(all.size(), 200000u);
  EXPECT_EQ(all.back(), 199999);
  const uint64_t cut = bytes / 3;  // within some line: neither part has it
  const size_t both = read(0, cut).size() + read(cut, bytes).size();
  EXPECT_GE(both, 199999u);
  EXPECT_LE(both, 200000u);
  EXPECT_TRUE(read(bytes, bytes).empty());
  read_samples(folder_ + "/none", 0, 100, [](const Sample&) { FAIL(); });
}

TEST_F(SampleFileTest, ATimeIsFoundWithoutReadingAll) {
  const uint64_t bytes = std::filesystem::file_size(path_);
  for (const int64_t wanted : {0, 1000, 100000, 199999}) {
    const uint64_t at = find_sample_time(path_, bytes, wanted * 1000);
    const std::vector<int64_t> values = read(at, bytes);
    ASSERT_FALSE(values.empty()) << wanted;
    EXPECT_LE(values.front(), wanted);
    EXPECT_GT(values.front(), wanted - 60 - 20000);  // a minute of disorder, and a quarter of a megabyte
  }
}

}  // namespace
}  // namespace pscloud

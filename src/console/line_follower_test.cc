#include "console/line_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "launch/sample_file.h"

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class LineFollowerTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/pscloud-follow-XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = folder_ + "/log";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void append(const std::string& text) const { std::ofstream(path_, std::ios::app) << text; }
  std::vector<std::string> read(LineFollower& follower, bool last = false) {
    std::vector<std::string_view> lines;
    more_ = follower.read(lines, last);
    return {lines.begin(), lines.end()};
  }

  std::string folder_;
  std::string path_;
  bool more_ = false;
};

TEST_F(LineFollowerTest, AFileThatComesLaterIsReadFromItsBegin) {
  LineFollower follower(path_, LineFollower::From::kEnd);
  EXPECT_THAT(read(follower), IsEmpty());
  append("a\nb\n");
  EXPECT_THAT(read(follower), ElementsAre("a", "b"));
  EXPECT_EQ(follower.offset(), 4u);
  EXPECT_THAT(read(follower), IsEmpty());
}

TEST_F(LineFollowerTest, ALineIsGivenWhenItHasEnded) {
  LineFollower follower(path_, LineFollower::From::kStart);
  append("first\nsec");
  EXPECT_THAT(read(follower), ElementsAre("first"));
  EXPECT_THAT(read(follower), IsEmpty());
  append("ond\n\nthird");
  EXPECT_THAT(read(follower), ElementsAre("second", ""));
  EXPECT_THAT(read(follower, true), ElementsAre("third"));
  EXPECT_THAT(read(follower, true), IsEmpty());
}

TEST_F(LineFollowerTest, FromTheEndMeansTheLineThatIsBeingWritten) {
  append("old\nne");
  LineFollower follower(path_, LineFollower::From::kEnd);
  append("w\n");
  EXPECT_THAT(read(follower), ElementsAre("new"));
}

// The file of samples is thinned out when it is large.
TEST_F(LineFollowerTest, AFileThatIsReplacedByAThinnerOneIsFollowedOn) {
  SampleFile samples(path_, 2000);
  const auto row = [](int i) { return "1700000000" + std::to_string(100 + i) + ",worker-0,loss," + std::to_string(i); };
  LineFollower follower(path_, LineFollower::From::kEnd);
  std::vector<std::string> wanted;
  std::vector<std::string> got;
  const auto take = [&] {
    do {
      const auto lines = read(follower);
      got.insert(got.end(), lines.begin(), lines.end());
    } while (more_);
  };
  for (int i = 0; i < 400; ++i) {
    wanted.push_back(row(i));
    ASSERT_TRUE(samples.append(row(i) + "\n"));
    if (i % 7 == 0) take();  // mostly some came before it was replaced, and some after
  }
  take();
  EXPECT_LT(std::filesystem::file_size(path_), 2100u);  // it was thinned more than once
  EXPECT_EQ(got, wanted);
}

TEST_F(LineFollowerTest, NothingIsLostOfWhatIsTooMuchAtOnce) {
  std::string all;
  for (int i = 0; i < 100000; ++i) all += "line " + std::to_string(i) + "\n";
  all += std::string(1000000, 'x') + "\nend\n";
  append(all);
  LineFollower follower(path_, LineFollower::From::kStart);
  size_t lines = 0;
  size_t bytes = 0;
  std::string last;
  do {
    for (const std::string& line : read(follower)) {
      ++lines;
      bytes += line.size();
      last = line;
    }
  } while (more_);
  EXPECT_EQ(follower.offset(), all.size());
  EXPECT_EQ(last, "end");
  EXPECT_EQ(bytes, all.size() - 100002);            // the ends of lines
  EXPECT_EQ(lines, 100000u + 1000000 / 65536 + 2);  // the long one in pieces of 64 KB
}

}  // namespace
}  // namespace pscloud

#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace pscloud {
namespace {

using testing::MatchesRegex;

// What `work` writes to stderr.
template <class Work>
std::string logged(Work work) {
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

const std::string kTime = "[0-9][0-9]:[0-9][0-9]:[0-9][0-9]\\.[0-9][0-9][0-9]";

class LogTest : public testing::Test {
 protected:
  void TearDown() override {
    set_log_level(LogLevel::kInfo);
    set_log_name("");
  }
};

TEST_F(LogTest, ALineHasTimeLevelNameAndText) {
  set_log_name("worker 1");
  EXPECT_THAT(logged([] { log_info("{} keys", 3); }), MatchesRegex(kTime + " I worker 1: 3 keys\n"));
  EXPECT_THAT(logged([] { log_warning("late"); }), MatchesRegex(kTime + " W worker 1: late\n"));
  EXPECT_THAT(logged([] { log_error("gone"); }), MatchesRegex(kTime + " E worker 1: gone\n"));
}

TEST_F(LogTest, WithoutANameTheTextFollowsTheLevel) {
  EXPECT_THAT(logged([] { log_info("up"); }), MatchesRegex(kTime + " I up\n"));
}

TEST_F(LogTest, LinesBelowTheLevelAreDropped) {
  EXPECT_EQ(logged([] { log_debug("detail"); }), "");
  set_log_level(LogLevel::kDebug);
  EXPECT_THAT(logged([] { log_debug("detail"); }), MatchesRegex(kTime + " D detail\n"));
  set_log_level(LogLevel::kError);
  EXPECT_FALSE(log_enabled(LogLevel::kWarning));
  EXPECT_EQ(logged([] { log_warning("late"); }), "");
}

TEST_F(LogTest, TextFromOutsideStaysOnItsLineAndIsNotAFormat) {
  EXPECT_THAT(logged([] { log_line(LogLevel::kInfo, "a\n00:00:00.000 E {} %v\x1b[0m"); }),
              MatchesRegex(kTime + R"( I a\\n00:00:00\.000 E \{\} %v\\x1b\[0m)" + "\n"));
  set_log_name("a\nb");
  EXPECT_THAT(logged([] { log_info("x"); }), MatchesRegex(kTime + R"( I a\\nb: x)" + "\n"));
}

TEST_F(LogTest, LinesOfManyThreadsStayWhole) {
  const std::string text = logged([] {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([] {
        for (int i = 0; i < 100; ++i) log_info("{}", std::string(100, 'x'));
      });
    }
  });
  const size_t line_bytes = std::string_view("21:04:05.123 I \n").size() + 100;
  ASSERT_EQ(text.size(), 400 * line_bytes);
  for (size_t end = line_bytes; end <= text.size(); end += line_bytes) ASSERT_EQ(text[end - 1], '\n');
}

}  // namespace
}  // namespace pscloud

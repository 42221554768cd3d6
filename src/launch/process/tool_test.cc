#include "launch/process/tool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace pscloud {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

TEST(Tool, WordsReachItAsTheyAreAndNoShellReadsThem) {
  const auto output = run_tool({"printf", "%s|", "a b", "$HOME", "it's", "*"}, "", seconds(20));
  ASSERT_TRUE(output);
  EXPECT_EQ(output->out, "a b|$HOME|it's|*|");
}

TEST(Tool, TakesMoreThanAPipeHolds) {
  const std::string much(1 << 20, 'x');
  const auto output = run_tool({"cat"}, much, seconds(20));
  ASSERT_TRUE(output);
  EXPECT_EQ(output->out, much);
}

TEST(Tool, ThatDoesNotReadIsNoError) {
  const auto output = run_tool({"true"}, std::string(1 << 20, 'x'), seconds(20));
  ASSERT_TRUE(output);
  EXPECT_EQ(output->code, 0);
}

TEST(Tool, IsNamedIfItIsNotThereOrFails) {
  EXPECT_EQ(run_tool({"no-such-tool-of-ours"}, "", seconds(20)).error().code, Code::kNotFound);
  const auto answer = tool_answer({"sh", "-c", "echo bad luck >&2; exit 7"}, "", seconds(20));
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("code 7: bad luck"));
}

TEST(Tool, ThatHangsIsEndedWithWhatItStarted) {
  const auto begin = std::chrono::steady_clock::now();
  const auto output = run_tool({"sh", "-c", "sleep 100 & sleep 100"}, "", milliseconds(200));
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().code, Code::kTimeout);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(50));
}

TEST(Tool, IsNotWaitedForAfterAStop) {
  const auto begin = std::chrono::steady_clock::now();
  std::jthread other([](const std::stop_token& stop) {
    const auto output = run_tool({"sleep", "100"}, "", seconds(100), stop);
    ASSERT_FALSE(output);
    EXPECT_THAT(output.error().message, HasSubstr("was not waited for"));
  });
  other.request_stop();
  other.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(50));
}

TEST(Tool, ListsAreReadWithoutSpacesAndEmptyLines) {
  EXPECT_EQ(lines_of_tool("  12 \n\n \t\n13\r\n14"), (std::vector<std::string>{"12", "13", "14"}));
  EXPECT_TRUE(lines_of_tool("").empty());
}

}  // namespace
}  // namespace pscloud

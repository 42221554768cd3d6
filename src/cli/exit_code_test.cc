#include "cli/exit_code.h"

#include <gtest/gtest.h>

namespace pscloud {
namespace {

TEST(ExitCode, TellsTheCallerHowToReact) {
  EXPECT_EQ(exit_code(Code::kInvalid), 2);
  EXPECT_EQ(exit_code(Code::kNotFound), 2);
  EXPECT_EQ(exit_code(Code::kUnavailable), 3);
  EXPECT_EQ(exit_code(Code::kTimeout), 3);
  EXPECT_EQ(exit_code(Code::kCorrupt), 1);
}

TEST(ExitCode, AnErrorIsOneLine) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(fail(invalid("no\nsuch\x1b thing")), 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "pscloud: no\\nsuch\\x1b thing\n");
}

TEST(ExitCode, AWrongUseSaysWhatToDo) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(fail_usage("no verb", "try one"), 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "pscloud: no verb\n  try one\n");
}

}  // namespace
}  // namespace pscloud

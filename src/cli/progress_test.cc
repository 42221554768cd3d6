#include "cli/progress.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace pscloud {
namespace {

class ProgressLineTest : public testing::Test {
 protected:
  std::string written() {
    std::string text(static_cast<size_t>(std::ftell(file_.get())), '\0');
    std::rewind(file_.get());
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), file_.get()), text.size());
    return text;
  }

  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{std::tmpfile(), &std::fclose};
  ManualClock clock_;
};

TEST_F(ProgressLineTest, OnATerminalEachTakesThePlaceOfTheLastAndNoneIsLeft) {
  {
    ProgressLine line(file_.get(), true, ProgressLine::Elsewhere::kLines, clock_);
    line.show("1%");
    line.show("2%");
  }
  EXPECT_EQ(written(), "\r\033[K1%\r\033[K2%\r\033[K");
}

TEST_F(ProgressLineTest, ElsewhereAPlainLineComesNowAndThen) {
  {
    ProgressLine line(file_.get(), false, ProgressLine::Elsewhere::kLines, clock_);
    line.show("1%");
    clock_.advance(ProgressLine::kBetweenLines);
    line.show("");
    line.show("2%");
    line.show("3%");
    clock_.advance(ProgressLine::kBetweenLines);
    line.show("4%");
  }
  EXPECT_EQ(written(), "2%\n4%\n");
}

TEST_F(ProgressLineTest, ElsewhereItIsSilentUnlessLinesAreWanted) {
  {
    ProgressLine line(file_.get(), false, ProgressLine::Elsewhere::kSilent, clock_);
    clock_.advance(ProgressLine::kBetweenLines);
    line.show("1%");
  }
  EXPECT_EQ(written(), "");
}

}  // namespace
}  // namespace pscloud

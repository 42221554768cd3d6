#include "launch/ledger.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace pscloud {
namespace {

class LedgerTest : public testing::Test {
 protected:
  LedgerTest() {
    std::string name = testing::TempDir() + "ledger-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    path_ = folder_ + "/ledger.jsonl";
  }
  ~LedgerTest() override { std::filesystem::remove_all(folder_); }

  uint64_t size() const { return std::filesystem::file_size(path_); }

  std::string folder_;
  std::string path_;
};

TEST_F(LedgerTest, AnotherProcessFindsWhatIsLeft) {
  {
    Ledger ledger = *Ledger::open(path_);
    const uint64_t first = *ledger.intend("process", {{"host", "a"}});
    const uint64_t second = *ledger.intend("folder", {{"path", "with \"quotes\"\nand lines"}});
    ASSERT_TRUE(ledger.learn(first, {{"pid", "77"}}));
    const uint64_t third = *ledger.intend("process", {{"host", "b"}});
    ASSERT_TRUE(ledger.gone(third));
    EXPECT_LT(first, second);
  }
  const auto left = *Ledger::read(path_);
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[0].kind, "process");
  EXPECT_EQ(left[0].what, (std::map<std::string, std::string>{{"host", "a"}, {"pid", "77"}}));
  EXPECT_EQ(left[1].what.at("path"), "with \"quotes\"\nand lines");

  Ledger again = *Ledger::open(path_);
  EXPECT_EQ(again.remaining().size(), 2u);
  EXPECT_GT(*again.intend("process", {}), left[1].number) << "numbers are never used twice";
}

TEST_F(LedgerTest, ALineThatWasCutOffIsNoLineWhereverItWasCut) {
  uint64_t whole = 0;
  {
    Ledger ledger = *Ledger::open(path_);
    ASSERT_TRUE(ledger.intend("process", {{"host", "a"}}));
    whole = size();
    ASSERT_TRUE(ledger.intend("process", {{"host", "b"}}));
  }
  std::string text(size(), '\0');
  std::ifstream(path_).read(text.data(), static_cast<std::streamsize>(text.size()));
  for (uint64_t cut = whole; cut < text.size(); ++cut) {
    std::ofstream(path_, std::ios::trunc) << text.substr(0, cut);
    EXPECT_EQ(Ledger::read(path_)->size(), 1u) << cut;
    Ledger ledger = *Ledger::open(path_);
    EXPECT_EQ(ledger.remaining().size(), 1u) << cut;
    ASSERT_TRUE(ledger.intend("process", {{"host", "c"}}));
    EXPECT_EQ(Ledger::open(path_)->remaining().size(), 2u) << cut;
  }
}

TEST_F(LedgerTest, WhoOnlyLooksChangesNothing) {
  std::ofstream(path_) << R"({"intend":1,"kind":"process","what":{}})"
                       << "\n"
                       << R"({"int)";
  const uint64_t before = size();
  EXPECT_EQ(Ledger::read(path_)->size(), 1u);
  EXPECT_EQ(size(), before);
  EXPECT_TRUE(Ledger::read(folder_ + "/nothing")->empty());
}

TEST_F(LedgerTest, ABadLineInTheMiddleIsNamed) {
  std::ofstream(path_) << "{\"intend\":1,\"kind\":\"a\",\"what\":{}}\nnonsense\n{\"gone\":1}\n";
  const auto opened = Ledger::open(path_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kCorrupt);
  EXPECT_NE(opened.error().message.find("line 2"), std::string::npos) << opened.error().message;
}

}  // namespace
}  // namespace pscloud

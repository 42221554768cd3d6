#include "base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace pscloud {
namespace {

TEST(Text, CharactersHaveTheLengthOfTheirForm) {
  EXPECT_EQ(utf8_character_bytes("a"), 1);
  EXPECT_EQ(utf8_character_bytes("é!"), 2);
  EXPECT_EQ(utf8_character_bytes("€!"), 3);
  EXPECT_EQ(utf8_character_bytes("\U0001f600!"), 4);
  EXPECT_EQ(utf8_character_bytes("\xf4\x8f\xbf\xbf"), 4);  // U+10FFFF, the last
  EXPECT_EQ(utf8_character_bytes(std::string_view("\0", 1)), 1);
}

TEST(Text, WhatIsNotUtf8HasNoLength) {
  EXPECT_EQ(utf8_character_bytes(""), 0);
  EXPECT_EQ(utf8_character_bytes("\x80"), 0);              // a continuation alone
  EXPECT_EQ(utf8_character_bytes("\xc3"), 0);              // cut short
  EXPECT_EQ(utf8_character_bytes("\xe2\x82"), 0);          // cut short
  EXPECT_EQ(utf8_character_bytes("\xc3("), 0);             // no continuation
  EXPECT_EQ(utf8_character_bytes("\xc0\xaf"), 0);          // overlong slash
  EXPECT_EQ(utf8_character_bytes("\xe0\x80\xaf"), 0);      // overlong slash
  EXPECT_EQ(utf8_character_bytes("\xf0\x80\x80\xaf"), 0);  // overlong slash
  EXPECT_EQ(utf8_character_bytes("\xed\xa0\x80"), 0);      // a surrogate
  EXPECT_EQ(utf8_character_bytes("\xf4\x90\x80\x80"), 0);  // above U+10FFFF
  EXPECT_EQ(utf8_character_bytes("\xff"), 0);
}

TEST(Text, ReadableTextIsUnchanged) {
  const std::string text = R"(C:\temp "größer" 参数 {0})";
  EXPECT_EQ(escape_controls(text), text);
}

TEST(Text, ControlCharactersCannotForgeALineOrACommand) {
  EXPECT_EQ(escape_controls("a\nb\r\tc"), "a\\nb\\r\\tc");
  EXPECT_EQ(escape_controls("\x1b[31m\x7f"), "\\x1b[31m\\x7f");
  EXPECT_EQ(escape_controls("\xc2\x9b"), "\\xc2\\x9b");
  EXPECT_EQ(escape_controls(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Text, BytesThatAreNotUtf8AreShownOneByOne) {
  EXPECT_EQ(escape_controls("a\xff\xc3(b"), "a\\xff\\xc3(b");
  EXPECT_EQ(escape_controls("\xe2\x82"), "\\xe2\\x82");
}

TEST(Text, AnyBytesComeOutPrintable) {
  Random random(7);
  for (int round = 0; round < 1000; ++round) {
    std::string text(random.below(20), ' ');
    for (char& c : text) c = static_cast<char>(random.next());
    std::string_view left = text;
    const std::string escaped = escape_controls(left);
    left = escaped;
    while (!left.empty()) {
      const size_t size = utf8_character_bytes(left);
      ASSERT_NE(size, 0) << escaped;
      ASSERT_TRUE(size > 1 || (left[0] >= ' ' && left[0] != 0x7f)) << escaped;
      left.remove_prefix(size);
    }
  }
}

}  // namespace
}  // namespace pscloud

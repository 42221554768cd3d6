#include "launch/agent/line_buffer.h"

#include <gtest/gtest.h>

#include <vector>

namespace pscloud {
namespace {

std::vector<std::string> lines_of(LineBuffer& buffer) {
  std::vector<std::string> lines;
  while (auto line = buffer.next()) lines.push_back(line->text + (line->continues ? "+" : ""));
  return lines;
}

TEST(LineBuffer, LinesAreTheSameHoweverTheBytesCome) {
  const std::string text = "one\n\nthree \r\nlast\n";
  for (size_t step = 1; step <= text.size(); ++step) {
    LineBuffer buffer(100);
    std::vector<std::string> lines;
    for (size_t at = 0; at < text.size(); at += step) {
      buffer.add(std::string_view(text).substr(at, step));
      for (std::string& line : lines_of(buffer)) lines.push_back(std::move(line));
    }
    EXPECT_EQ(lines, (std::vector<std::string>{"one", "", "three \r", "last"})) << step;
    EXPECT_EQ(buffer.rest(), "");
  }
}

TEST(LineBuffer, ALongLineComesInPiecesOfWholeCharacters) {
  LineBuffer buffer(4);
  buffer.add("abcdefg\nabc\u00e9x\nabcd\n");
  EXPECT_EQ(lines_of(buffer), (std::vector<std::string>{"abcd+", "efg", "abc+", "\u00e9x", "abcd"}));
}

TEST(LineBuffer, WhatHasNoEndIsTheRest) {
  LineBuffer buffer(10);
  buffer.add("a\nb");
  EXPECT_EQ(lines_of(buffer), std::vector<std::string>{"a"});
  EXPECT_EQ(buffer.rest(), "b");
  EXPECT_EQ(buffer.rest(), "");
}

TEST(LineBuffer, BytesThatAreNoTextAreCutAnywhere) {
  LineBuffer buffer(4);
  buffer.add(std::string(9, '\x80'));
  size_t bytes = 0;
  while (auto line = buffer.next()) bytes += line->text.size();
  EXPECT_EQ(bytes + buffer.rest().size(), 9u);
}

}  // namespace
}  // namespace pscloud

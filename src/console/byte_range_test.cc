#include "console/byte_range.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

namespace pscloud {
namespace {

std::string answer_text(std::string_view header, uint64_t bytes) {
  const RangeAnswer answer = parse_range(header, bytes);
  if (answer.kind == RangeAnswer::Kind::kWhole) return "whole";
  if (answer.kind == RangeAnswer::Kind::kUnsatisfiable) return "unsatisfiable";
  return std::to_string(answer.range.begin) + " " + std::to_string(answer.range.end);
}

// As RFC 9110, 14.1.2 and 14.2 have it.
TEST(ByteRange, PartsAreWhatTheStandardSays) {
  EXPECT_EQ(answer_text("bytes=0-0", 10), "0 1");
  EXPECT_EQ(answer_text("bytes=2-5", 10), "2 6");
  EXPECT_EQ(answer_text("bytes=2-", 10), "2 10");
  EXPECT_EQ(answer_text("bytes=2-99", 10), "2 10");
  EXPECT_EQ(answer_text("bytes=-3", 10), "7 10");
  EXPECT_EQ(answer_text("bytes=-99", 10), "0 10");
  EXPECT_EQ(answer_text("bytes=0-18446744073709551615", 10), "0 10");
  EXPECT_EQ(answer_text("bytes=-18446744073709551615", 10), "0 10");
}

TEST(ByteRange, WhatIsNotThereIsUnsatisfiable) {
  EXPECT_EQ(answer_text("bytes=10-", 10), "unsatisfiable");
  EXPECT_EQ(answer_text("bytes=10-20", 10), "unsatisfiable");
  EXPECT_EQ(answer_text("bytes=-0", 10), "unsatisfiable");
  EXPECT_EQ(answer_text("bytes=-5", 0), "unsatisfiable");
  EXPECT_EQ(answer_text("bytes=0-", 0), "unsatisfiable");
}

TEST(ByteRange, WhatIsNotUnderstoodIsIgnored) {
  for (const char* header : {"", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=5-2", "bytes=1-2,4-5", "lines=1-2",
                             "bytes=1 -2", "bytes=99999999999999999999-", "bytes=--1"}) {
    EXPECT_EQ(answer_text(header, 10), "whole") << header;
  }
}

}  // namespace
}  // namespace pscloud

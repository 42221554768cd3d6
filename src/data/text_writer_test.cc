#include "data/text_writer.h"

#include <gtest/gtest.h>

#include "data/click_log.h"

namespace pscloud {
namespace {

RowBlock parse_back(ExampleFormat format, std::string text) {
  RowBlock block;
  BadLines bad;
  const size_t size = text.size();
  text.append(kScanPadding, '\0');
  make_parser(format, false)->parse(std::string_view(text).substr(0, size), block, bad);
  EXPECT_EQ(bad.count, 0u) << bad.first.front().reason;
  return block;
}

std::string text_of(ExampleFormat format, const RowBlock& block) {
  std::string text;
  const auto written = append_text(format, slice_of(block, 0, block.rows()), 7, text);
  EXPECT_TRUE(written) << written.error().message;
  return text;
}

RowBlock two_rows() {
  RowBlock block;
  block.keys = {3, 9, 4};
  block.values = {0.5f, 1, 2};
  block.groups = {1, 2, 2};
  block.labels = {1, 0};
  block.ends = {2, 3};
  return block;
}

TEST(TextWriter, WritesEachFormatAsItIs) {
  RowBlock block = two_rows();
  EXPECT_EQ(text_of(ExampleFormat::kLibsvm, block), "1 3:0.5 9:1\n0 4:2\n");
  EXPECT_EQ(text_of(ExampleFormat::kVw, block), "1 |f 3:0.5 9\n-1 |f 4:2\n");
  EXPECT_EQ(text_of(ExampleFormat::kSparse, block), "1; 1 3:0.5; 2 9:1;\n-1; 2 4:2;\n");
  block.values.clear();
  EXPECT_EQ(text_of(ExampleFormat::kSparseBinary, block), "1; 1 3; 2 9;\n-1; 2 4;\n");
  EXPECT_EQ(text_of(ExampleFormat::kAdfea, block), "7 1 1 3:1 9:2\n8 1 0 4:2\n");
  EXPECT_EQ(text_of(ExampleFormat::kTerafea, block),
            "1 7 | 18014398509481987 36028797018963977\n-1 8 | 36028797018963972\n");
}

TEST(TextWriter, WhatIsReadBackIsWhatWasWritten) {
  ClickLog log({.keys = 260});
  RowBlock block;
  for (int i = 0; i < 50; ++i) log.next(block);
  for (const ExampleFormat format : {ExampleFormat::kLibsvm, ExampleFormat::kSparse}) {
    const RowBlock back = parse_back(format, text_of(format, block));
    EXPECT_EQ(back.keys, block.keys);
    EXPECT_EQ(back.values, block.values);
    EXPECT_EQ(back.ends, block.ends);
    for (size_t i = 0; i < block.rows(); ++i) EXPECT_EQ(back.labels[i] > 0, block.labels[i] > 0);
  }
  EXPECT_EQ(parse_back(ExampleFormat::kVw, text_of(ExampleFormat::kVw, block)).values, block.values);
  EXPECT_EQ(parse_back(ExampleFormat::kCriteo, text_of(ExampleFormat::kCriteo, block)).rows(), 50u);
  block.values.clear();
  for (const ExampleFormat format : {ExampleFormat::kSparseBinary, ExampleFormat::kAdfea}) {
    const RowBlock back = parse_back(format, text_of(format, block));
    EXPECT_EQ(back.keys, block.keys);
    EXPECT_EQ(back.groups, block.groups);
  }
  EXPECT_EQ(parse_back(ExampleFormat::kTerafea, text_of(ExampleFormat::kTerafea, block)).groups, block.groups);
}

TEST(TextWriter, FeaturesWithoutGroupsAreInTheFirst) {
  RowBlock block = two_rows();
  block.groups.clear();
  EXPECT_EQ(text_of(ExampleFormat::kSparse, block), "1; 1 3:0.5 9:1;\n-1; 1 4:2;\n");
}

TEST(TextWriter, ColumnsOfCriteoAreThoseThatWereRead) {
  RowBlock block;
  ClickLog({.keys = 260}).next(block);
  const RowBlock back = parse_back(ExampleFormat::kCriteo, text_of(ExampleFormat::kCriteo, block));
  EXPECT_EQ(back.groups, block.groups);
}

TEST(TextWriter, RecordsHaveTheLabelInSlotZero) {
  const RowBlock block = two_rows();
  // Magic, length; slot 0 with 1.0; slot 1 with key 3 and 0.5; slot 2 with key 9 and 1.0.
  const std::string first(
      "\x0a\x23\xd7\x3e\x22\0\0\0"
      "\x0a\x06\x1a\x04\0\0\x80\x3f"
      "\x0a\x0b\x08\x01\x12\x01\x03\x1a\x04\0\0\0\x3f"
      "\x0a\x0b\x08\x02\x12\x01\x09\x1a\x04\0\0\x80\x3f",
      42);
  EXPECT_EQ(text_of(ExampleFormat::kProto, block).substr(0, first.size()), first);
}

TEST(TextWriter, ValuesWithoutAPlaceAreAMistake) {
  std::string text;
  RowBlock block = two_rows();
  const auto refused = append_text(ExampleFormat::kAdfea, slice_of(block, 0, 2), 1, text);
  EXPECT_EQ(refused.error().message, "example 1 has values that are not 1: ADFEA has no place for them");
  block.groups = {0, 1, 1};
  EXPECT_EQ(append_text(ExampleFormat::kProto, slice_of(block, 0, 2), 1, text).error().message,
            "example 1 has features of group 0: in PROTO that is the label's");
}

}  // namespace
}  // namespace pscloud

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/click_log.h"
#include "data/parser.h"
#include "data/text_writer.h"

namespace pscloud {
namespace {

using testing::ElementsAre;

std::string field_text(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

std::string float_text(std::initializer_list<float> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(float)};
}

// Keys below 128.
std::string slot_text(int id, const std::string& keys, std::initializer_list<float> values) {
  std::string slot = id == 0 ? "" : std::string{'\x08', static_cast<char>(id)};
  if (!keys.empty()) slot += field_text(2, keys);
  if (values.size() > 0) slot += field_text(3, float_text(values));
  return field_text(1, slot);
}

const std::string kPositive = slot_text(0, "", {1});

struct ProtoRows {
  RowBlock block;
  BadLines bad;
};

ProtoRows read_records(std::initializer_list<std::string> records, bool ignore_groups = false) {
  ProtoRows rows;
  const auto parser = make_parser(ExampleFormat::kProto, ignore_groups);
  EXPECT_TRUE(parser->reads_records());
  for (const std::string& record : records) parser->parse_record(record, rows.block, rows.bad);
  return rows;
}

std::string refusal(const std::string& record) {
  const auto [block, bad] = read_records({record});
  EXPECT_EQ(block.rows(), 0u);
  EXPECT_TRUE(block.keys.empty() && block.values.empty() && block.groups.empty());
  return bad.count == 1 ? bad.first.front().reason : fmt::format("{} are bad", bad.count);
}

TEST(ProtoParser, SlotsAreGroupsWithOrWithoutValues) {
  const auto [block, bad] = read_records({kPositive + slot_text(3, "\x05\x07", {}) + slot_text(4, "\x09", {0.5f}),
                                          slot_text(9, "", {2, 3}) + slot_text(0, "", {-1})});
  EXPECT_EQ(bad.count, 0u);
  EXPECT_THAT(block.labels, ElementsAre(1, -1));
  EXPECT_THAT(block.keys, ElementsAre(5, 7, 9, Key{9} << 32, (Key{9} << 32) + 1));
  EXPECT_THAT(block.values, ElementsAre(1, 1, 0.5f, 2, 3));
  EXPECT_THAT(block.groups, ElementsAre(3, 3, 4, 9, 9));
  EXPECT_THAT(block.ends, ElementsAre(3, 5));
}

TEST(ProtoParser, FeaturesThatAreAllOneHaveNoValuesAndNeedNoGroups) {
  const auto [block, bad] = read_records({kPositive + slot_text(3, "\x05", {}), kPositive}, true);
  EXPECT_THAT(block.keys, ElementsAre(5));
  EXPECT_TRUE(block.values.empty());
  EXPECT_TRUE(block.groups.empty());
}

TEST(ProtoParser, FieldsMayBeUnknownUnpackedAndInAnyOrder) {
  // Key 300 alone in two bytes, a value alone, then the id; before it a field 5 that nobody knows.
  const std::string slot = std::string("\x10\xac\x02\x1d", 4) + float_text({2}) + std::string("\x08\x06", 2);
  const auto [block, bad] = read_records({std::string("\x28\x96\x01", 3) + kPositive + field_text(1, slot)});
  EXPECT_EQ(bad.count, 0u);
  EXPECT_THAT(block.keys, ElementsAre(300));
  EXPECT_THAT(block.values, ElementsAre(2));
  EXPECT_THAT(block.groups, ElementsAre(6));
}

TEST(ProtoParser, WhatIsNoExampleIsNamed) {
  EXPECT_EQ(refusal(slot_text(3, "\x05", {})), "the label is missing");
  EXPECT_EQ(refusal(kPositive + kPositive), "slot 0 must be one label");
  EXPECT_EQ(refusal(slot_text(0, "\x05", {1})), "slot 0 must be one label");
  EXPECT_EQ(refusal(kPositive + slot_text(3, "\x05\x06", {1})), "slot 3 has 2 keys and 1 values");
  EXPECT_EQ(refusal(kPositive + field_text(1, "\x08\x80\x20\x12\x01\x05")), "a group must be below 4096");
  EXPECT_EQ(refusal(kPositive + "\x0a\x7f"), "no message of protobuf");  // longer than there is
  EXPECT_EQ(refusal(kPositive + "\x0b"), "no message of protobuf");      // a wire type of old
  EXPECT_EQ(refusal(kPositive + field_text(1,
                                           "\x1a\x03"
                                           "abc")),
            "no message of protobuf");  // no whole float
  EXPECT_EQ(refusal(kPositive + field_text(1, field_text(2, std::string(10, '\xff')))), "no message of protobuf");
}

TEST(ProtoParser, WhatIsReadBackIsWhatWasWritten) {
  ClickLog log({.keys = 260});
  RowBlock block;
  for (int i = 0; i < 20; ++i) log.next(block);
  const auto parser = make_parser(ExampleFormat::kProto, false);
  RowBlock back;
  BadLines bad;
  std::string text;
  for (size_t row = 0; row < block.rows(); ++row) {
    text.clear();
    ASSERT_TRUE(append_text(ExampleFormat::kProto, slice_of(block, row, 1), row, text));
    parser->parse_record(std::string_view(text).substr(8), back, bad);
    EXPECT_EQ(back.labels.back() > 0, block.labels[row] > 0);
  }
  EXPECT_EQ(bad.count, 0u);
  EXPECT_EQ(back.keys, block.keys);
  EXPECT_EQ(back.values, block.values);
  EXPECT_EQ(back.groups, block.groups);
  EXPECT_EQ(back.ends, block.ends);
}

}  // namespace
}  // namespace pscloud

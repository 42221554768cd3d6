#include "data/example_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "io/memory_store.h"

namespace pscloud {
namespace {

using testing::ElementsAre;

std::string numbered_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{} {}:1 {}:2.5\n", i, i, i + 1000);
  return text;
}

TEST(ExampleReader, MinibatchesOfAnySizeHaveAllExamplesInOrder) {
  MemoryStore store({{"f", numbered_lines(100)}});
  for (const size_t chunk : {1u, 50u, 10000u}) {
    for (const size_t rows : {1u, 3u, 40u, 100u, 1000u}) {
      ExampleReader reader(store, make_parser(ExampleFormat::kLibsvm, true), chunk);
      ASSERT_TRUE(reader.open({"f"}));
      int next = 0;
      while (true) {
        const RowSlice slice = reader.next(rows).value();
        if (slice.rows() == 0) break;
        EXPECT_TRUE(slice.rows() == rows || next + slice.rows() == 100u);
        ASSERT_EQ(slice.keys.size(), 2 * slice.rows());
        for (size_t row = 0; row < slice.rows(); ++row, ++next) {
          ASSERT_EQ(slice.labels[row], static_cast<float>(next));
          ASSERT_EQ(slice.ends[row] - slice.first, 2 * row + 2);
          ASSERT_EQ(slice.keys[2 * row + 1], static_cast<Key>(next + 1000));
          ASSERT_EQ(slice.values[2 * row + 1], 2.5f);
        }
      }
      EXPECT_EQ(next, 100);
    }
  }
}

TEST(ExampleReader, OnePartFollowsAnother) {
  MemoryStore store({{"a", "1 1:1\n2 2:2\n"}, {"b", "3 3:3\n"}});
  ExampleReader reader(store, make_parser(ExampleFormat::kLibsvm, true));
  ASSERT_TRUE(reader.open({"a"}));
  EXPECT_THAT(reader.next(1).value().labels, ElementsAre(1));
  ASSERT_TRUE(reader.open({"b"}));
  EXPECT_THAT(reader.next(5).value().labels, ElementsAre(3));
  EXPECT_EQ(reader.next(5).value().rows(), 0u);
  EXPECT_EQ(reader.open({"c"}).error().code, Code::kNotFound);
}

TEST(ExampleReader, BadLinesAreCountedAndTheFirstAreKept) {
  std::string text = "1 1:1\n";
  for (int i = 0; i < 20; ++i) text += "x\n";
  MemoryStore store({{"f", text}});
  ExampleReader reader(store, make_parser(ExampleFormat::kLibsvm, true), 10);
  ASSERT_TRUE(reader.open({"f"}));
  EXPECT_EQ(reader.next(100).value().rows(), 1u);
  EXPECT_EQ(reader.bad_lines().count, 20u);
  ASSERT_EQ(reader.bad_lines().first.size(), BadLines::kKept);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(reader.bad_lines().first[i].offset, 6 + 2 * i);
  ASSERT_TRUE(reader.open({.uri = "f", .begin = 20}));  // those of one part are not those of another
  EXPECT_EQ(reader.next(100).value().rows(), 0u);
  EXPECT_EQ(reader.bad_lines().count, 13u);
}

TEST(ExampleReader, RecordsAreReadAndBadOnesToldByTheirPlace) {
  const std::string label("\x0a\x06\x1a\x04\0\0\x80\x3f", 8);
  std::string text;
  append_record(label + std::string("\x0a\x05\x08\x01\x12\x01\x05", 7), text);
  append_record("not this", text);
  const size_t third = text.size();
  append_record(label, text);
  append_record(label, text);
  text[third] = 'x';
  MemoryStore store({{"f", text}});
  for (const size_t chunk : {1u, 1000u}) {
    ExampleReader reader(store, make_parser(ExampleFormat::kProto, true), chunk);
    ASSERT_TRUE(reader.open({"f"}));
    const RowSlice slice = reader.next(100).value();
    EXPECT_THAT(slice.labels, ElementsAre(1, 1));
    EXPECT_THAT(slice.keys, ElementsAre(5));
    EXPECT_EQ(reader.bad_lines().count, 2u);
    EXPECT_TRUE(reader.reads_records());
    EXPECT_EQ(reader.bad_lines().first[0].offset, 23u);
    EXPECT_EQ(reader.bad_lines().first[1].offset, third);
  }
}

TEST(ExampleReader, FeaturesThatAreAllOneHaveNoValues) {
  const std::string text = "1; 3 10 11; 4 12;\n-1; 3 13;\n";
  MemoryStore store({{"f", text}});
  ExampleReader reader(store, make_parser(ExampleFormat::kSparseBinary, false), 5);
  ASSERT_TRUE(reader.open({"f"}));
  ASSERT_EQ(reader.next(1).value().rows(), 1u);
  const RowSlice slice = reader.next(1).value();
  EXPECT_THAT(slice.keys, ElementsAre(13));
  EXPECT_TRUE(slice.values.empty());
  EXPECT_THAT(slice.groups, ElementsAre(3));
}

}  // namespace
}  // namespace pscloud

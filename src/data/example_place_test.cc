#include "data/example_place.h"

#include <gtest/gtest.h>

#include "io/memory_store.h"
#include "io/recordio.h"
#include "io/test_compress.h"

namespace pscloud {
namespace {

// "number at offset"
std::string place(const std::string& contents, uint64_t number, ExampleFormat format = ExampleFormat::kLibsvm) {
  MemoryStore store({{"f", contents}});
  const auto found = find_example(store, "f", format, number);
  return found ? fmt::format("{} at {}", found->number, found->offset) : found.error().message;
}

TEST(ExamplePlace, LinesThatAreEmptyDoNotCount) {
  const std::string text = "one\n\ntwo\r\n \t\r\nx\n";
  EXPECT_EQ(place(text, 0), "0 at 0");
  EXPECT_EQ(place(text, 1), "1 at 4");
  EXPECT_EQ(place(text, 2), "2 at 10");
  EXPECT_EQ(place(text, 3), "3 at 16");
  EXPECT_EQ(place(text, 4), "3 at 16");
  EXPECT_EQ(place("one\ntwo", 9), "2 at 7");
  EXPECT_EQ(place("", 9), "0 at 0");
}

TEST(ExamplePlace, CompressedFilesHavePlacesInTheirText) { EXPECT_EQ(place(gzip("one\ntwo\nthree\n"), 2), "2 at 8"); }

TEST(ExamplePlace, RecordsAreCountedDamagedOnesToo) {
  std::string text;
  for (int i = 0; i < 3; ++i) append_record("abc", text);
  EXPECT_EQ(place(text, 2, ExampleFormat::kProto), "2 at 22");
  text[11] = 'x';
  EXPECT_EQ(place(text, 2, ExampleFormat::kProto), "2 at 22");
  EXPECT_EQ(place(text, 9, ExampleFormat::kProto), "3 at 33");
}

}  // namespace
}  // namespace pscloud

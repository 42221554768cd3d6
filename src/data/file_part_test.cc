#include "data/file_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/memory_store.h"
#include "io/test_compress.h"

namespace pscloud {
namespace {

using testing::ElementsAre;

const uint64_t kEnd = FilePart{}.end;

std::vector<FilePart> cut(const std::string& contents, uint64_t bytes) {
  MemoryStore store({{"f", contents}});
  const std::vector<FileInfo> files{store.stat("f").value()};
  return cut_files(store, files, bytes).value();
}

TEST(FilePart, LargeFilesAreCutEvenlyAndTheLastPartIsOpen) {
  EXPECT_THAT(cut(std::string(100, 'x'), 40),
              ElementsAre(FilePart{"f", 0, 34}, FilePart{"f", 34, 68}, FilePart{"f", 68, kEnd}));
  EXPECT_THAT(cut(std::string(100, 'x'), 100), ElementsAre(FilePart{"f", 0, kEnd}));
  EXPECT_THAT(cut("", 100), ElementsAre(FilePart{"f", 0, kEnd}));
}

TEST(FilePart, CompressedFilesAreWhole) {
  EXPECT_THAT(cut(gzip(std::string(100, 'x')), 4), ElementsAre(FilePart{"f", 0, kEnd}));
  EXPECT_THAT(cut(zstd(std::string(100, 'x')), 4), ElementsAre(FilePart{"f", 0, kEnd}));
}

TEST(FilePart, ComesBackFromItsText) {
  const FilePart part{.uri = "s3://bucket/a b.txt", .begin = 7};
  EXPECT_EQ(to_text(part), "7 18446744073709551615 s3://bucket/a b.txt");
  EXPECT_EQ(part_of_text(to_text(part)).value(), part);
  for (const char* text : {"", "7", "7 8", "x 8 uri", "7 -1 uri"}) {
    EXPECT_EQ(part_of_text(text).error().code, Code::kCorrupt) << text;
  }
}

}  // namespace
}  // namespace pscloud

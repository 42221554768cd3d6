#include "data/file_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "io/memory_store.h"
#include "io/test_compress.h"

namespace pscloud {
namespace {

using testing::ElementsAre;

const uint64_t kEnd = FilePart{}.end;

std::vector<FilePart> cut(const std::string& contents, uint64_t bytes) {
  MemoryStore store({{"f", contents}});
  const FileInfo file = store.stat("f").value();
  std::vector<FilePart> parts = cut_file(file, bytes, can_be_cut(store, file).value());
  for (FilePart& part : parts) {
    EXPECT_EQ(std::exchange(part.version, ""), file.version);
  }
  return parts;
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

TEST(FilePart, AVersionThatOnlyThisMachineKnowsIsNotCarried) {
  MemoryStore store({{"f", std::string("text")}});
  FileInfo file = store.stat("f").value();
  file.version_is_global = false;
  EXPECT_THAT(cut_file(file, 100, true), ElementsAre(FilePart{"f", 0, kEnd}));
}

TEST(FilePart, AFileThatItsStoreGivesNoPartsOfIsWhole) {
  MemoryStore store({{"f", std::string(100, 'x')}});
  FileInfo file = store.stat("f").value();
  file.gives_parts = false;
  EXPECT_FALSE(can_be_cut(store, file).value());
}

TEST(FilePart, OfRecordsOnlyThoseThatCanBeFoundAreCut) {
  EXPECT_THAT(cut("\x0a\x23\xd7\x3e" + std::string(96, 'x'), 40), ElementsAre(FilePart{"f", 0, kEnd}));
  EXPECT_EQ(cut("\x0a\x23\xd7\xce" + std::string(96, 'x'), 40).size(), 3u);
}

TEST(FilePart, ComesBackFromItsText) {
  const FilePart part{.uri = "s3://bucket/a b.txt", .begin = 7};
  EXPECT_EQ(to_text(part), "7 18446744073709551615 - s3://bucket/a b.txt");
  EXPECT_EQ(part_of_text(to_text(part)).value(), part);
  const FilePart version{.uri = "s3://bucket/a b.txt", .begin = 7, .end = 9, .version = "0f-2"};
  EXPECT_EQ(to_text(version), "7 9 0f-2 s3://bucket/a b.txt");
  EXPECT_EQ(part_of_text(to_text(version)).value(), version);
  for (const char* text : {"", "7", "7 8", "7 8 -", "7 8  uri", "x 8 - uri", "7 -1 - uri"}) {
    EXPECT_EQ(part_of_text(text).error().code, Code::kCorrupt) << text;
  }
}

}  // namespace
}  // namespace pscloud

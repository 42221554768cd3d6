#include "io/decompress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "io/memory_store.h"
#include "io/test_compress.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

Result<std::string> text_of(const std::string& bytes, size_t read_max) {
  MemoryStore store({{"file", bytes}}, read_max);
  const auto input = TRY(open_decompressed(store, "file"));
  return read_all(*input, 1 << 20);
}

std::string some_lines() {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += std::to_string(i * 7919 % 10007) + " 1:2\n";
  return text;
}

TEST(Decompress, EachKindGivesTheTextWhateverPiecesItIsReadIn) {
  const std::string text = some_lines();
  for (const std::string& bytes : {text, gzip(text), zstd(text)}) {
    for (const size_t read_max : {1u, 7u, 1u << 20}) EXPECT_EQ(text_of(bytes, read_max).value(), text);
  }
}

TEST(Decompress, SeveralMembersOrFramesAreOneText) {
  EXPECT_EQ(text_of(gzip("one\n") + gzip("") + gzip("two\n"), 3).value(), "one\ntwo\n");
  EXPECT_EQ(text_of(zstd("one\n") + zstd("") + zstd("two\n"), 3).value(), "one\ntwo\n");
}

TEST(Decompress, ShortAndEmptyFilesAreText) {
  for (const std::string text : {"", "1", "\x1f", "\x28\xb5"}) EXPECT_EQ(text_of(text, 1).value(), text);
  EXPECT_EQ(text_of(gzip(""), 1).value(), "");
  EXPECT_EQ(text_of(zstd(""), 1).value(), "");
}

TEST(Decompress, AFileThatEndsTooEarlyIsNeverTakenForAWholeOne) {
  for (const std::string& bytes : {gzip("some text"), zstd("some text")}) {
    for (size_t size = 4; size < bytes.size(); ++size) {
      const auto text = text_of(bytes.substr(0, size), 5);
      ASSERT_FALSE(text) << size;
      EXPECT_EQ(text.error().code, Code::kCorrupt);
      EXPECT_THAT(text.error().message, HasSubstr("file: the "));
      EXPECT_THAT(text.error().message, HasSubstr("ends too early"));
    }
  }
}

TEST(Decompress, DamageIsNamed) {
  for (std::string bytes : {gzip(some_lines()), zstd(some_lines())}) {
    bytes[bytes.size() / 2] ^= 0x55;
    const auto text = text_of(bytes, 1 << 20);
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().code, Code::kCorrupt);
    EXPECT_THAT(text.error().message, HasSubstr("is damaged after"));
  }
  const auto text = text_of(gzip("x") + "no member", 100);
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().message, HasSubstr("is damaged after 1 bytes"));
}

TEST(Decompress, FramesToBeSkippedAreSkipped) {
  const std::string skipped("\x50\x2a\x4d\x18\x03\x00\x00\x00xyz", 11);
  EXPECT_EQ(text_of(skipped + zstd("one\n") + skipped + zstd("two\n"), 3).value(), "one\ntwo\n");
}

TEST(Decompress, NoMoreIsReadThanWasAskedFor) {
  MemoryStore store({{"file", gzip(std::string(1 << 20, 'x'))}}, 4096);
  const auto input = open_decompressed(store, "file").value();
  EXPECT_EQ(read_all(*input, 1000).error().message, "more than 1000 bytes");
}

TEST(Decompress, KindIsKnownByTheContent) {
  MemoryStore store({{"a.gz", "text"}, {"b", gzip("text")}, {"c", zstd("text")}});
  EXPECT_EQ(compression_of(store, "a.gz").value(), Compression::kNone);
  EXPECT_EQ(compression_of(store, "b").value(), Compression::kGzip);
  EXPECT_EQ(compression_of(store, "c").value(), Compression::kZstd);
}

}  // namespace
}  // namespace pscloud

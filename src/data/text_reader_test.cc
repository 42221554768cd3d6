#include "data/text_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"
#include "data/scan.h"
#include "io/memory_store.h"
#include "io/test_compress.h"

namespace pscloud {
namespace {

// All lines of a part. Each piece must be whole lines, with its place.
std::string lines_of(MemoryStore& store, const FilePart& part, const std::string& text, size_t chunk) {
  TextReader reader = TextReader::open(store, part, chunk).value();
  std::string lines;
  while (true) {
    const std::string_view piece = reader.next().value();
    if (piece.empty()) return lines;
    EXPECT_EQ(text.substr(reader.offset(), piece.size()), piece);
    EXPECT_TRUE(piece.ends_with('\n') || reader.offset() + piece.size() == text.size());
    EXPECT_FALSE(is_digit(piece.data()[piece.size()]) && !piece.ends_with('\n'));
    lines += piece;
  }
}

TEST(TextReader, PartsHaveEachLineOnceWhereverTheCutsAre) {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    const uint64_t size = random.below(60);
    while (text.size() < size) text += random.below(4) == 0 ? '\n' : static_cast<char>('0' + random.below(10));
    MemoryStore store({{"f", text}}, 1 + random.below(9));
    const size_t chunk = 1 + random.below(20);
    const uint64_t a = random.below(size + 2);
    const uint64_t b = a + random.below(size + 2);
    std::string all;
    for (const FilePart& part : {FilePart{"f", 0, a}, FilePart{"f", a, b}, FilePart{"f", b}}) {
      all += lines_of(store, part, text, chunk);
    }
    ASSERT_EQ(all, text) << "cut at " << a << " and " << b << ", chunks of " << chunk;
  }
}

TEST(TextReader, ALineBelongsToThePartItBeginsIn) {
  const std::string text = "one\ntwo\nthree";
  MemoryStore store({{"f", text}});
  EXPECT_EQ(lines_of(store, {"f", 0, 4}, text, 5), "one\n");
  EXPECT_EQ(lines_of(store, {"f", 0, 5}, text, 5), "one\ntwo\n");
  EXPECT_EQ(lines_of(store, {"f", 3, 5}, text, 5), "two\n");
  EXPECT_EQ(lines_of(store, {"f", 9}, text, 5), "");
}

TEST(TextReader, LinesMayBeLongerThanTheBuffer) {
  std::string text(100000, '7');
  text += '\n';
  text.append(50000, '8');
  MemoryStore store({{"f", text}}, 4096);
  EXPECT_EQ(lines_of(store, {"f"}, text, 16), text);
}

TEST(TextReader, CompressedFilesAreReadAsTheirText) {
  const std::string text = "one\ntwo\n";
  MemoryStore store({{"f", gzip(text)}});
  EXPECT_EQ(lines_of(store, {"f"}, text, 4), text);
  EXPECT_EQ(lines_of(store, {"f", 0, 4}, text, 4), "one\n");
  EXPECT_EQ(lines_of(store, {"f", 4}, text, 4), "two\n");
  EXPECT_EQ(lines_of(store, {"f", 40}, text, 4), "");
}

TEST(TextReader, LinesAreNumberedFromOne) {
  MemoryStore store({{"f", gzip("a\nbb\nc")}});
  EXPECT_EQ(line_number(store, "f", 0).value(), 1u);
  EXPECT_EQ(line_number(store, "f", 1).value(), 1u);
  EXPECT_EQ(line_number(store, "f", 2).value(), 2u);
  EXPECT_EQ(line_number(store, "f", 5).value(), 3u);
  EXPECT_EQ(line_number(store, "f", 5, {.offset = 2, .line = 2}).value(), 3u);
}

TEST(TextReader, AFileThatIsNotTheVersionOfThePartIsNamed) {
  MemoryStore store({{"f", std::string("some text\n")}});
  const std::string version = store.stat("f").value().version;
  EXPECT_TRUE(TextReader::open(store, {.uri = "f", .version = version}));
  for (const uint64_t begin : {0, 2}) {
    const auto reader = TextReader::open(store, {.uri = "f", .begin = begin, .version = "older"});
    ASSERT_FALSE(reader);
    EXPECT_EQ(reader.error().code, Code::kFailed);
    EXPECT_EQ(reader.error().message.find("f: has changed since the run began"), 0u);
  }
}

}  // namespace
}  // namespace pscloud

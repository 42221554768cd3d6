#include "io/recordio.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "io/memory_store.h"
#include "io/test_compress.h"

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

std::string word_text(uint32_t word) { return {reinterpret_cast<const char*>(&word), sizeof word}; }

const std::string kAlignedMagicText = word_text(0xced7230a);

std::string plain(const std::vector<std::string>& records) {
  std::string text;
  for (const std::string& record : records) text += word_text(0x3ed7230a) + word_text(record.size()) + record;
  return text;
}

// As dmlc-core writes it: cut at each magic that stands at a multiple of four, which itself is left out.
std::string aligned(const std::vector<std::string>& records) {
  std::string text;
  const auto add = [&](uint32_t flag, const std::string& piece) {
    text +=
        kAlignedMagicText + word_text(flag << 29 | piece.size()) + piece + std::string((4 - piece.size() % 4) % 4, 0);
  };
  for (const std::string& record : records) {
    size_t begin = 0;
    for (size_t at = 0; at + 4 <= record.size(); at += 4) {
      if (record.compare(at, 4, kAlignedMagicText) != 0) continue;
      add(begin == 0 ? 1 : 2, record.substr(begin, at - begin));
      begin = at + 4;
    }
    add(begin == 0 ? 0 : 3, record.substr(begin));
  }
  return text;
}

// What a part holds; damage as "offset: reason".
std::vector<std::string> read_part(FileStore& store, ByteRange range = {}) {
  RecordReader reader = RecordReader::open(store, "f", range).value();
  std::vector<std::string> all;
  while (const auto record = reader.next().value()) {
    all.push_back(record->damage.empty() ? std::string(record->bytes)
                                         : fmt::format("{}: {}", record->offset, record->damage));
  }
  return all;
}

std::vector<std::string> read_text(const std::string& text) {
  MemoryStore store({{"f", text}});
  return read_part(store);
}

TEST(RecordIO, BothKindsAreKnownByTheirMagic) {
  const std::vector<std::string> records = {"one", "", "three"};
  EXPECT_THAT(read_text(plain(records)), ElementsAreArray(records));
  EXPECT_THAT(read_text(aligned(records)), ElementsAreArray(records));
  EXPECT_THAT(read_text(gzip(aligned(records))), ElementsAreArray(records));
  EXPECT_THAT(read_text(""), ElementsAre());
  MemoryStore store({{"f", std::string("1 3:4\n")}});
  EXPECT_THAT(RecordReader::open(store, "f", {}).error().message, HasSubstr("f: no file of records"));
}

TEST(RecordIO, WhatIsWrittenIsReadAndHasTheBytesOfDmlc) {
  std::string text;
  append_record("one", text);
  append_record("", text);
  EXPECT_EQ(text, plain({"one", ""}));
}

TEST(RecordIO, RecordsMayHoldTheMagicAndBeLongerThanTheBuffer) {
  const std::vector<std::string> records = {kAlignedMagicText, "abcd" + kAlignedMagicText + kAlignedMagicText + "e",
                                            "ab" + kAlignedMagicText, std::string(600000, 'x')};
  EXPECT_THAT(read_text(aligned(records)), ElementsAreArray(records));
  EXPECT_THAT(read_text(plain(records)), ElementsAreArray(records));
}

TEST(RecordIO, PartsHaveEachRecordOnceWhereverTheCutsAre) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> records;
    for (uint64_t i = random.below(6); i > 0; --i) {
      std::string record;
      for (uint64_t j = random.below(4); j > 0; --j) record += random.chance(0.4) ? kAlignedMagicText : "abcde";
      records.push_back(record);
    }
    const std::string text = aligned(records);
    MemoryStore store({{"f", text}}, 1 + random.below(9));
    const uint64_t a = random.below(text.size() + 2);
    const uint64_t b = a + random.below(text.size() + 2);
    std::vector<std::string> all;
    for (const ByteRange& range : {ByteRange{0, a}, ByteRange{a, b}, ByteRange{b}}) {
      for (std::string& record : read_part(store, range)) all.push_back(std::move(record));
    }
    ASSERT_THAT(all, ElementsAreArray(records)) << "cut at " << a << " and " << b;
  }
}

TEST(RecordIO, APlainRecordCanBeTheFirstOfAPart) {
  MemoryStore store({{"f", plain({"one", "two", "three"})}});
  EXPECT_THAT(read_part(store, {11, 22}), ElementsAre("two"));
}

TEST(RecordIO, DamageIsToldAndTheRecordsBehindItAreFound) {
  std::string text = plain({"one", "two", "three"});
  text[11] = 'x';
  EXPECT_THAT(read_text(text), ElementsAre("one", "11: no record begins here", "three"));
  text = plain({"one", "two", "three"});
  text[18] = '\x7f';  // of the length
  EXPECT_THAT(read_text(text),
              ElementsAre("one", HasSubstr("11: the record has 2130706435 bytes, more than 67108864"), "three"));
  text = plain({"one", "two"});
  EXPECT_THAT(read_text(text.substr(0, 21)), ElementsAre("one", "11: the file ends within the record"));
  EXPECT_THAT(read_text(text.substr(0, 16)), ElementsAre("one", "11: the file ends within the head of a record"));
}

TEST(RecordIO, PiecesThatAreMissingAreToldOnce) {
  const std::string text = aligned({"abcd" + kAlignedMagicText + "efgh", "two"});
  const std::string last = text.substr(24);
  EXPECT_THAT(read_text(text.substr(0, 12) + last), ElementsAre("0: pieces of the record are missing", "two"));
  EXPECT_THAT(read_text(text.substr(0, 12)), ElementsAre("0: the file ends within the record"));
  EXPECT_THAT(read_text(text.substr(0, 12) + "12345678" + last),
              ElementsAre("0: pieces of the record are missing", "two"));
}

}  // namespace
}  // namespace pscloud

#include "learn/row_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/bytes.h"
#include "base/random.h"
#include "io/crc32c.h"
#include "io/memory_store.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

struct ReadRows {
  RowFileInfo info;
  std::vector<Key> keys;
  std::vector<float> floats;
};

Result<ReadRows> read_rows(const std::string& bytes) {
  MemoryStore store({{"f", bytes}}, 1 << 20);
  ReadRows rows;
  rows.info = TRY(read_row_file(
      store, "f", [&](const RowFileInfo&, std::span<const Key> keys, std::span<const float> floats) -> Result<> {
        rows.keys.insert(rows.keys.end(), keys.begin(), keys.end());
        rows.floats.insert(rows.floats.end(), floats.begin(), floats.end());
        return {};
      }));
  return rows;
}

std::string written(std::span<const Key> keys, std::span<const float> floats, uint32_t width) {
  MemoryStore store;
  RowFileWriter writer(store.create("f").value(), width);
  EXPECT_TRUE(writer.write(keys, floats));
  EXPECT_TRUE(writer.commit());
  return store.get("f");
}

TEST(RowFile, ComesBackToTheLastBit) {
  Random random(5);
  std::vector<Key> keys(100000);
  std::vector<float> floats(keys.size() * 3);
  for (Key& key : keys) key = random.next();
  for (float& one : floats) one = static_cast<float>(random.below(1000)) / 7;
  MemoryStore store({}, 1000);
  RowFileWriter writer(store.create("f").value(), 1);
  ASSERT_TRUE(writer.write(std::span(keys).first(10), std::span(floats).first(30)));
  ASSERT_TRUE(writer.write({}, {}));
  ASSERT_TRUE(writer.write(std::span(keys).subspan(10), std::span(floats).subspan(30)));
  ASSERT_TRUE(writer.commit());
  EXPECT_TRUE(is_row_file(store, "f").value());
  const auto rows = read_rows(store.get("f"));
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->keys, keys);
  EXPECT_EQ(rows->floats, floats);
  EXPECT_EQ(rows->info.width, 1u);
  EXPECT_EQ(rows->info.floats, 3u);
  EXPECT_EQ(rows->info.rows, keys.size());
  EXPECT_EQ(rows->info.check, writer.info().check);
}

// As docs/model-format.md has them.
TEST(RowFile, HasTheBytesOfItsPage) {
  const std::string file = written(std::vector<Key>{7}, std::vector<float>{0.5f}, 1);
  ASSERT_EQ(file.size(), 24u + 4 + 8 + 4 + 4 + 20);
  EXPECT_EQ(file.substr(0, 20), std::string("PSCLROWS\1\0\0\0\1\0\0\0\1\0\0\0", 20));
  EXPECT_EQ(file.substr(24, 16), std::string("\1\0\0\0\7\0\0\0\0\0\0\0\0\0\0\x3f", 16));
  EXPECT_EQ(file.substr(44, 12), std::string("\0\0\0\0\1\0\0\0\0\0\0\0", 12));
}

TEST(RowFile, NoRowsAreAFileToo) {
  const auto rows = read_rows(written({}, {}, 2));
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->info.rows, 0u);
  EXPECT_EQ(rows->info.width, 2u);
}

TEST(RowFile, NoByteMayBeOtherThanItWas) {
  const std::string file = written(std::vector<Key>{7, 9}, std::vector<float>{0.5f, 1, 2, 3}, 2);
  for (size_t at = 0; at < file.size(); ++at) {
    for (const int bit : {1, 128}) {
      std::string damaged = file;
      damaged[at] = static_cast<char>(damaged[at] ^ bit);
      const auto rows = read_rows(damaged);
      ASSERT_FALSE(rows) << at;
      EXPECT_EQ(rows.error().code, Code::kCorrupt);
      EXPECT_THAT(rows.error().message, HasSubstr("f: "));
    }
    const auto cut = read_rows(file.substr(0, at));
    ASSERT_FALSE(cut);
    EXPECT_THAT(cut.error().message, HasSubstr("is not whole"));
  }
  EXPECT_THAT(read_rows(file + "x").error().message, HasSubstr("goes on behind its end"));
}

TEST(RowFile, ABlockThatIsMissingIsMissed) {
  const std::string file = written(std::vector<Key>{7, 9}, std::vector<float>{1, 2}, 1);
  const std::string one = written(std::vector<Key>{7}, std::vector<float>{1}, 1);
  const std::string header = one.substr(0, 24);
  const std::string block = one.substr(24, 20);
  const std::string end = one.substr(44);
  EXPECT_TRUE(read_rows(header + block + end));
  EXPECT_THAT(read_rows(header + end).error().message, HasSubstr("blocks of rows are missing"));
  EXPECT_THAT(read_rows(header + file.substr(24, 32) + end).error().message, HasSubstr("blocks of rows are missing"));
}

TEST(RowFile, OtherFilesAreToldApart) {
  MemoryStore store({{"text", "7\t0.5\n"}, {"long", "7\t0.5\n8\t0.25\n9\t1\n10\t-1.5\n"}, {"empty", ""}});
  for (const char* name : {"text", "long", "empty"}) EXPECT_FALSE(is_row_file(store, name).value());
  EXPECT_THAT(read_rows(store.get("long")).error().message, HasSubstr("is no file of rows"));
  std::string file = written({}, {}, 1);
  file[8] = 2;
  EXPECT_THAT(read_rows(file).error().message, HasSubstr("version 2"));
}

TEST(RowFile, NumbersThatAreNoneAreRefused) {
  EXPECT_THAT(read_rows(written(std::vector<Key>{1, 8}, std::vector<float>{1, NAN}, 1)).error().message,
              HasSubstr("the row of key 8 has nan"));
  // A header that is sound but for its numbers.
  for (const uint32_t width : {0u, 65537u}) {
    ByteWriter header;
    header.put_raw(bytes_of(std::string_view("PSCLROWS")));
    for (const uint32_t number : {1u, width, width}) header.put(number);
    header.put(crc32c(header.bytes()));
    const std::string bytes(reinterpret_cast<const char*>(header.bytes().data()), header.size());
    EXPECT_THAT(read_rows(bytes).error().message, HasSubstr("cannot be"));
  }
}

}  // namespace
}  // namespace pscloud

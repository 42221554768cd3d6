#include "base/bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/random.h"

namespace pscloud {
namespace {

TEST(Bytes, WhatIsWrittenIsRead) {
  ByteWriter writer;
  writer.put(uint8_t{7});
  writer.put(UINT64_MAX);
  writer.put(-1.5f);
  writer.put_text("größer");
  writer.put_text("");
  writer.put_raw(bytes_of("xy"));

  ByteReader reader(writer.bytes());
  EXPECT_EQ(reader.get<uint8_t>(), 7);
  EXPECT_EQ(reader.get<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(reader.get<float>(), -1.5f);
  EXPECT_EQ(reader.get_text(100), "größer");
  EXPECT_EQ(reader.get_text(100), "");
  EXPECT_EQ(reader.get_raw(2).size(), 2);
  EXPECT_TRUE(reader.finish("message"));
}

TEST(Bytes, NumbersAreLittleEndian) {
  ByteWriter writer;
  writer.put(uint32_t{0x01020304});
  ASSERT_EQ(writer.size(), 4);
  EXPECT_EQ(writer.bytes()[0], std::byte{4});
  EXPECT_EQ(writer.bytes()[3], std::byte{1});
}

TEST(Bytes, AShortReadGivesZerosForEver) {
  ByteWriter writer;
  writer.put(uint32_t{UINT32_MAX});
  ByteReader reader(writer.bytes());
  EXPECT_EQ(reader.get<uint64_t>(), 0);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.get<uint8_t>(), 0);  // though a byte was there
  EXPECT_EQ(reader.get_text(10), "");
  EXPECT_EQ(reader.finish("join").error().code, Code::kCorrupt);
  EXPECT_EQ(reader.finish("join").error().message, "join is cut short or has a length that cannot be");
}

TEST(Bytes, WhatIsLeftOverIsAnError) {
  const std::byte raw[3] = {};
  ByteReader reader(raw);
  reader.get<uint8_t>();
  EXPECT_EQ(reader.finish("join").error().message, "join has 2 bytes too many");
}

TEST(Bytes, ATextAboveItsLimitIsRefused) {
  ByteWriter writer;
  writer.put_text("abcd");
  EXPECT_EQ(ByteReader(writer.bytes()).get_text(4), "abcd");
  ByteReader reader(writer.bytes());
  EXPECT_EQ(reader.get_text(3), "");
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.get<uint8_t>(), 0);  // not the 'a'
}

TEST(Bytes, ACountThatCannotFollowIsRefused) {
  ByteWriter writer;
  writer.put(uint32_t{3});
  for (int i = 0; i < 3; ++i) writer.put(uint64_t{1});
  EXPECT_EQ(ByteReader(writer.bytes()).get_count(8), 3);

  ByteReader reader(writer.bytes());
  EXPECT_EQ(reader.get_count(9), 0);
  EXPECT_FALSE(reader.ok());

  ByteWriter huge;  // its product with the size of a thing wraps around 2^32
  huge.put(std::numeric_limits<uint32_t>::max());
  huge.put(uint64_t{0});
  ByteReader huge_reader(huge.bytes());
  EXPECT_EQ(huge_reader.get_count(8), 0);
  EXPECT_FALSE(huge_reader.ok());
}

TEST(Bytes, AReaderStaysInsideWhateverItIsAsked) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    // On the heap and exactly as large as said, so that the sanitizer sees a read outside.
    Buffer buffer(random.below(40));
    for (auto& b : buffer.span()) b = static_cast<std::byte>(random.below(4));
    ByteReader reader(std::as_const(buffer).span());
    for (int i = 0; i < 10; ++i) {
      const size_t before = reader.left();
      switch (random.below(5)) {
        case 0: reader.get<uint8_t>(); break;
        case 1: reader.get<double>(); break;
        case 2: EXPECT_LE(reader.get_raw(random.below(50)).size(), before); break;
        case 3: EXPECT_LE(reader.get_text(random.below(50)).size(), before); break;
        case 4: EXPECT_LE(reader.get_count(1 + random.below(8)), before); break;
      }
      ASSERT_LE(reader.left(), before) << "seed " << seed;
    }
  }
}

TEST(Bytes, ACopyAndAShareHaveTheSameBytes) {
  ByteWriter writer;
  writer.put_text("abc");
  const SharedBuffer shared = writer.share();
  EXPECT_TRUE(std::ranges::equal(shared->span(), writer.bytes()));
  EXPECT_EQ(Buffer::copy_of({}).size(), 0);
}

}  // namespace
}  // namespace pscloud

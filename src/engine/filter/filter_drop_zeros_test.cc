#include <gtest/gtest.h>

#include <bit>

#include "engine/filter/filter_testing.h"

namespace pscloud {
namespace {

const std::vector<FilterSpec> kZerosDropped{{FilterKind::kDropZeros}};
constexpr size_t kHead = 1 + 3 + 4 + 4 + 4;  // count, kind and length, rows kept, bytes of keys, zeros

TEST(DropZeros, ZeroRowsCostOneBit) {
  FilterEnds ends;
  std::vector<float> values(800 * 4, 0.0f);
  values[17 * 4 + 3] = 2;
  values[799 * 4] = 3;
  const auto payload = ends.encode(kZerosDropped, {}, values, 800);
  ASSERT_TRUE(payload.has_value());
  EXPECT_EQ((*payload)->size(), kHead + 100 + 2 * 16);
  EXPECT_EQ(ends.decode((*payload)->span(), 800, 4, false, true)->values, values);
}

TEST(DropZeros, MinusZeroAndTinyValuesAreKept) {
  FilterEnds ends;
  std::vector<float> values(20, 0.0f);
  values[3] = -0.0f;
  values[4] = 1e-45f;
  const auto passed = ends.pass(kZerosDropped, values);
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(std::bit_cast<uint32_t>(passed[i]), std::bit_cast<uint32_t>(values[i])) << i;
}

TEST(DropZeros, LeavesNoTraceWhenNothingIsGained) {
  FilterEnds ends;
  const auto payload = ends.encode(kZerosDropped, {}, std::vector<float>(9, 1), 9);
  EXPECT_EQ((*payload)->size(), 36u);
}

TEST(DropZeros, WorksOnCodedValues) {
  FilterEnds ends;
  std::vector<float> values(100, 0.0f);
  values[50] = 1;
  for (const FilterKind coder : {FilterKind::kFixedPoint, FilterKind::kFloat16}) {
    const std::vector<FilterSpec> chain{{coder, 1}, {FilterKind::kDropZeros}};
    const auto payload = ends.encode(chain, {}, values, 100);
    EXPECT_LT((*payload)->size(), 40u);
    EXPECT_EQ(ends.decode((*payload)->span(), 100, 1, false, true)->values, values);
  }
}

TEST(DropZeros, BitmapThatDisagreesWithTheRowsIsCorrupt) {
  FilterEnds ends;
  std::vector<float> values(9, 0.0f);
  values[8] = 1;
  const auto payload = ends.encode(kZerosDropped, {}, values, 9);
  std::vector<std::byte> bytes((*payload)->span().begin(), (*payload)->span().end());
  ASSERT_EQ(bytes[kHead + 1], std::byte{1});
  for (const int last : {0, 2, 3, 0x81}) {  // none, one beyond the last row, two
    bytes[kHead + 1] = static_cast<std::byte>(last);
    EXPECT_FALSE(ends.decode(bytes, 9, 1, false, true).has_value()) << last;
  }
}

TEST(DropZeros, AnyDamageIsHarmless) {
  FilterEnds ends;
  std::vector<float> values(30, 0.0f);
  values[7] = 1;
  expect_damage_is_harmless(*ends.encode(kZerosDropped, {}, values, 15), 15, 2, false, true);
}

}  // namespace
}  // namespace pscloud

#include <gtest/gtest.h>

#include <numeric>

#include "engine/filter/filter_testing.h"

namespace pscloud {
namespace {

class Compress : public testing::TestWithParam<FilterKind> {
 protected:
  FilterEnds ends_;
  const std::vector<FilterSpec> chain_{{GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Both, Compress, testing::Values(FilterKind::kLz4, FilterKind::kZstd));

TEST_P(Compress, KeysAndValuesThatRepeatBecomeSmall) {
  std::vector<Key> keys(1000);
  std::iota(keys.begin(), keys.end(), 1);
  const std::vector<float> values(1000, 0.5f);
  const auto payload = ends_.encode(chain_, keys, values, 1000);
  ASSERT_TRUE(payload.has_value());
  EXPECT_LT((*payload)->size(), 7000u);
  const auto decoded = ends_.decode((*payload)->span(), 1000, 1, true, true);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->keys, keys);
  EXPECT_EQ(decoded->values, values);
}

TEST_P(Compress, SectionThatWouldGrowStaysAsItIs) {
  std::vector<Key> keys(100);
  for (Key& key : keys) key = ends_.random.next();
  const std::vector<float> values(100, 0.5f);
  const auto payload = ends_.encode(chain_, keys, values, 100);
  ASSERT_TRUE(payload.has_value());
  EXPECT_GT((*payload)->size(), 800u);
  EXPECT_LT((*payload)->size(), 900u);
  EXPECT_EQ(ends_.decode((*payload)->span(), 100, 1, true, true)->keys, keys);

  const auto only_keys = ends_.encode(chain_, keys, {}, 100);
  EXPECT_EQ((*only_keys)->size(), 808u);  // as if there were no filter
}

TEST_P(Compress, AnyDamageIsHarmless) {
  const std::vector<float> values(100, 0.5f);
  const auto payload = ends_.encode(chain_, {}, values, 100);
  ASSERT_TRUE(payload.has_value());
  ASSERT_LT((*payload)->size(), 200u);
  expect_damage_is_harmless(*payload, 100, 1, false, true);
}

TEST_P(Compress, SizesThatCannotBeAreRefusedBeforeMemoryIsAskedFor) {
  const auto payload = [&](uint32_t plain, uint32_t stored) {
    ByteWriter writer;
    writer.put(uint8_t{1});
    writer.put(GetParam());
    writer.put(uint16_t{16});
    for (const uint32_t number : {0u, 0u, plain, stored}) writer.put(number);
    writer.put(uint32_t{0});
    for (uint32_t i = 0; i < std::min(stored, 100u); ++i) writer.put(uint8_t{0});
    return writer;
  };
  for (const auto& [plain, stored] : {std::pair{0xffffffffu, 4u}, {8u, 9u}, {8u, 0u}, {4u, 2u}, {8u, 0xffffffffu}}) {
    const auto decoded = ends_.decode(payload(plain, stored).bytes(), 2, 1, false, true);
    ASSERT_FALSE(decoded.has_value()) << plain << " " << stored;
    EXPECT_EQ(decoded.error().code, Code::kCorrupt);
  }
}

}  // namespace
}  // namespace pscloud

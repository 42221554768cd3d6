#include "base/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"

namespace pscloud {
namespace {

static_assert(unmix_key(mix_key(0)) == 0);
static_assert(unmix_key(mix_key(UINT64_MAX)) == UINT64_MAX);

TEST(Hash, UnmixUndoesMix) {
  std::vector<uint64_t> keys = {0, 1, 2, UINT64_MAX, UINT64_MAX - 1, uint64_t{1} << 63, 0xff51afd7ed558ccd};
  for (int bit = 0; bit < 64; ++bit) keys.push_back(uint64_t{1} << bit);
  Random random(1);
  for (int i = 0; i < 100000; ++i) keys.push_back(random.next());
  for (const uint64_t key : keys) {
    ASSERT_EQ(unmix_key(mix_key(key)), key);
    ASSERT_EQ(mix_key(unmix_key(key)), key);
  }
}

TEST(Hash, MixIsTheFinalizerOfMurmurHash3) {
  // From the formula, computed in Python.
  EXPECT_EQ(mix_key(0), 0);
  EXPECT_EQ(mix_key(1), 0xb456bcfc34c2cb2c);
  EXPECT_EQ(mix_key(2), 0x3abf2a20650683e7);
}

TEST(Hash, SmallIdsSpreadOverTheRange) {
  constexpr int kKeys = 65536;
  constexpr int kParts = 16;
  std::vector<int> counts(kParts);
  for (uint64_t key = 0; key < kKeys; ++key) ++counts[mix_key(key) >> 60];
  // 4096 each, give or take five standard deviations of a binomial.
  for (const int count : counts) EXPECT_NEAR(count, kKeys / kParts, 5 * 62);
}

TEST(Hash, BytesHashAsXxh3) {
  // Printed by a C program with libxxhash 0.8.1.
  EXPECT_EQ(hash64(bytes_of("parameter")), 0x26f5397808ea7d33);
  EXPECT_EQ(hash128(bytes_of("parameter")), (Hash128{0x7e61fcdb1e4b6fab, 0x0e017368e449c418}));
  // The values for no bytes, from the vectors in xxHash's sanity test.
  EXPECT_EQ(hash64({}), 0x2d06800538d394c2);
  EXPECT_EQ(hash128({}), (Hash128{0x6001c324468d497f, 0x99aa06d3014798d8}));
}

TEST(Hash, EveryByteCounts) {
  std::string text(300, 'a');
  std::set<uint64_t> seen = {hash64(bytes_of(text))};
  std::set<Hash128> seen128 = {hash128(bytes_of(text))};
  for (size_t i = 0; i < text.size(); ++i) {
    text[i] = 'b';
    EXPECT_TRUE(seen.insert(hash64(bytes_of(text))).second) << i;
    EXPECT_TRUE(seen128.insert(hash128(bytes_of(text))).second) << i;
    text[i] = 'a';
  }
}

}  // namespace
}  // namespace pscloud

#include "data/localizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Localizer, KeysAreNumberedInIncreasingOrder) {
  Localizer localizer;
  localizer.localize(std::vector<Key>{30, 10, 30, std::numeric_limits<Key>::max(), 10, 0});
  EXPECT_THAT(localizer.keys(), ElementsAre(0, 10, 30, std::numeric_limits<Key>::max()));
  EXPECT_THAT(localizer.columns(), ElementsAre(2, 1, 2, 3, 1, 0));
}

TEST(Localizer, NothingHasNoKeys) {
  Localizer localizer;
  localizer.localize(std::vector<Key>{5});
  localizer.localize({});
  EXPECT_THAT(localizer.keys(), IsEmpty());
  EXPECT_THAT(localizer.columns(), IsEmpty());
}

RC_GTEST_PROP(Localizer, LeadsEachFeatureToItsKey, (std::vector<Key> wide, std::vector<uint8_t> narrow)) {
  std::vector<Key> features = std::move(wide);
  for (const uint8_t key : narrow) features.push_back(Key{key} * 0x0101010101010101);
  const std::set<Key> keys(features.begin(), features.end());

  Localizer localizer;
  localizer.localize(std::vector<Key>{1, 2, 3});  // of another minibatch
  localizer.localize(features);
  RC_ASSERT(std::ranges::equal(localizer.keys(), keys));
  for (size_t i = 0; i < features.size(); ++i) RC_ASSERT(localizer.keys()[localizer.columns()[i]] == features[i]);
}

TEST(Localizer, ManyKeysThatShareTheirLowBitsAreTold) {
  std::vector<Key> features;
  for (Key i = 0; i < 100000; ++i) features.push_back((99999 - i) << 40);
  Localizer localizer;
  localizer.localize(features);
  for (Key i = 0; i < 100000; ++i) ASSERT_EQ(localizer.keys()[i], i << 40);
}

}  // namespace
}  // namespace pscloud

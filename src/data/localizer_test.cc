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

// At the edges of words and of what is taken for close.
TEST(Localizer, KeysCloseTogetherAreNumberedAsOthersAre) {
  for (const Key least : {Key{0}, Key{1}, Key{63}, std::numeric_limits<Key>::max() - 64 * 6}) {
    for (const Key last : {Key{0}, Key{63}, Key{64}, Key{64 * 6 - 1}, Key{64 * 6}}) {
      Localizer localizer;
      localizer.localize(std::vector<Key>{least + last, least, least + last / 2, least, least + last, least});
      std::set<Key> keys{least, least + last / 2, least + last};
      EXPECT_TRUE(std::ranges::equal(localizer.keys(), keys)) << least << " " << last;
      const auto place = [&](Key key) { return static_cast<uint32_t>(std::distance(keys.begin(), keys.find(key))); };
      EXPECT_THAT(localizer.columns(),
                  ElementsAre(place(least + last), 0, place(least + last / 2), 0, place(least + last), 0));
    }
  }
}

RC_GTEST_PROP(Localizer, LeadsEachFeatureThatIsCloseToItsKey, (const std::vector<uint8_t>& steps, Key least)) {
  std::vector<Key> features{least};
  for (const uint8_t step : steps) features.push_back(features.front() + step % 64 * features.size());
  const std::set<Key> keys(features.begin(), features.end());
  Localizer localizer;
  localizer.localize(features);
  RC_ASSERT(std::ranges::equal(localizer.keys(), keys));
  for (size_t i = 0; i < features.size(); ++i) RC_ASSERT(localizer.keys()[localizer.columns()[i]] == features[i]);
}

// Where keys of a minibatch are has no say in the numbers of the next.
RC_GTEST_PROP(Localizer, MinibatchesHaveNothingInCommon, (const std::vector<std::vector<uint8_t>>& minibatches)) {
  Localizer localizer;
  for (const auto& steps : minibatches) {
    std::vector<Key> features;
    // Near the last, or far from them.
    for (const uint8_t step : steps) features.push_back(Key{steps.front()} * steps.size() * 100 + step);
    const std::set<Key> keys(features.begin(), features.end());
    localizer.localize(features);
    RC_ASSERT(std::ranges::equal(localizer.keys(), keys));
    for (size_t i = 0; i < features.size(); ++i) RC_ASSERT(localizer.keys()[localizer.columns()[i]] == features[i]);
  }
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

#include "engine/server/hot_keys.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace pscloud {
namespace {

// A list as a worker sends it: `hot` and so many others that never come again.
std::vector<Key> list_with(Key hot, size_t others, Key& fresh) {
  std::vector<Key> keys{hot};
  for (size_t i = 0; i < others; ++i) keys.push_back(fresh++);
  std::ranges::sort(keys);
  return keys;
}

TEST(HotKeys, AKeyThatComesAgainAndAgainIsFoundAmongManyThatDoNot) {
  HotKeys hot(7);
  Key fresh = 1000;
  const size_t lists = 20000;
  for (size_t i = 0; i < lists; ++i) hot.take(list_with(i % 2 == 0 ? 3 : 5, 20, fresh));
  const auto top = hot.top(10);
  ASSERT_EQ(top.size(), 2u) << "only two keys come again";
  for (const auto& [key, count] : top) {
    EXPECT_TRUE(key == 3 || key == 5) << key;
    EXPECT_NEAR(static_cast<double>(count), lists / 2.0, lists * 0.3);
  }
}

TEST(HotKeys, AListThatComesAgainShowsAllItsKeys) {
  // As many keys are skipped on average as make whole lists: without chance it would always be the same one.
  HotKeys hot(1);
  std::vector<Key> keys(16);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  for (int i = 0; i < 4000; ++i) hot.take(keys);
  EXPECT_EQ(hot.top(100).size(), keys.size());
}

TEST(HotKeys, ALargeFlatTableHasNone) {
  HotKeys hot(2);
  for (int i = 0; i < 20; ++i) {
    for (Key key = 0; key < 20000; ++key) hot.add(key);
    EXPECT_TRUE(hot.top(10).empty()) << i;
  }
}

TEST(HotKeys, TheKeyZeroIsAKeyLikeAnyOther) {
  HotKeys hot(3);
  EXPECT_TRUE(hot.top(10).empty());
  for (int i = 0; i < 5; ++i) hot.add(0);
  hot.add(9);  // once is chance
  ASSERT_EQ(hot.top(10).size(), 1u);
  EXPECT_EQ(hot.top(10)[0].key, 0u);
  EXPECT_EQ(hot.top(10)[0].count, 5 * HotKeys::kEvery);
  EXPECT_TRUE(hot.top(0).empty());
}

}  // namespace
}  // namespace pscloud

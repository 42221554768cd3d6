#include "base/suggest.h"

#include <gtest/gtest.h>

#include <vector>

namespace pscloud {
namespace {

TEST(EditDistance, CountsTheLettersThatDiffer) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("node", "node"), 0);
  EXPECT_EQ(edit_distance("", "node"), 4);
  EXPECT_EQ(edit_distance("nod", "node"), 1);
  EXPECT_EQ(edit_distance("nodee", "node"), 1);
  EXPECT_EQ(edit_distance("mode", "node"), 1);
  EXPECT_EQ(edit_distance("ndoe", "node"), 1);  // swapped
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(EditDistance, IsTheSameBothWays) {
  const std::vector<std::string> words = {"", "a", "ab", "ba", "node", "version", "bench", "abcdef"};
  for (const auto& a : words) {
    for (const auto& b : words) EXPECT_EQ(edit_distance(a, b), edit_distance(b, a)) << a << ' ' << b;
  }
}

TEST(Suggest, FindsWhatWasMeant) {
  const std::vector<std::string> verbs = {"bench", "ca", "node", "version"};
  EXPECT_EQ(suggest("nod", verbs), "node");
  EXPECT_EQ(suggest("ndoe", verbs), "node");
  EXPECT_EQ(suggest("vers", verbs), "version");
  EXPECT_EQ(suggest("verison", verbs), "version");
  EXPECT_EQ(suggest("cs", verbs), "ca");
}

TEST(Suggest, SaysNothingWhereNothingIsNear) {
  const std::vector<std::string> verbs = {"bench", "ca", "node", "version"};
  EXPECT_EQ(suggest("", verbs), "");
  EXPECT_EQ(suggest("frobnicate", verbs), "");
  EXPECT_EQ(suggest("xy", verbs), "");
  EXPECT_EQ(suggest("node", {}), "");
}

}  // namespace
}  // namespace pscloud

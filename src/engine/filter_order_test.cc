#include "engine/filter_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace pscloud {
namespace {

using enum FilterKind;

bool accepted(std::vector<FilterKind> kinds) { return check_filter_order(kinds).has_value(); }

TEST(FilterOrder, EveryKindMayStandAlone) {
  for (int kind = 1; kind <= 8; ++kind) EXPECT_TRUE(accepted({static_cast<FilterKind>(kind)})) << kind;
  EXPECT_FALSE(accepted({static_cast<FilterKind>(0)}));
  EXPECT_FALSE(accepted({static_cast<FilterKind>(9)}));
}

TEST(FilterOrder, AllStagesInOrderAreAccepted) {
  EXPECT_TRUE(accepted({}));
  EXPECT_TRUE(accepted({kKeyCaching, kNoise, kFixedPoint, kDropZeros, kZstd}));
  EXPECT_TRUE(accepted({kNoise, kFloat16, kDropZeros, kKeyCaching, kLz4}));
}

TEST(FilterOrder, NothingFollowsACompressor) {
  for (const FilterKind kind : {kKeyCaching, kLz4, kZstd, kFixedPoint, kFloat16, kBfloat16, kDropZeros, kNoise}) {
    EXPECT_FALSE(accepted({kLz4, kind})) << filter_name(kind);
  }
}

TEST(FilterOrder, RowsMustBeWholeForNoiseAndCoders) {
  EXPECT_FALSE(accepted({kDropZeros, kNoise}));
  EXPECT_FALSE(accepted({kDropZeros, kFixedPoint}));
  EXPECT_FALSE(accepted({kFloat16, kNoise}));
}

TEST(FilterOrder, NoStageComesTwice) {
  EXPECT_FALSE(accepted({kFixedPoint, kFloat16}));
  EXPECT_FALSE(accepted({kKeyCaching, kKeyCaching}));
  EXPECT_FALSE(accepted({kDropZeros, kKeyCaching, kDropZeros}));
}

TEST(FilterOrder, RefusalSaysTheRightOrder) {
  const std::vector kinds{kZstd, kFloat16};
  const auto result = check_filter_order(kinds);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, Code::kInvalid);
  EXPECT_THAT(result.error().message, testing::HasSubstr("float16 cannot come after zstd; the order is key_caching"));
}

}  // namespace
}  // namespace pscloud

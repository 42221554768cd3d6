#include "learn/shared_work.h"

#include <gtest/gtest.h>

#include "data/file_part.h"

namespace pscloud {
namespace {

TEST(SharedWork, APartOfAFileIsNamedForPeople) {
  EXPECT_EQ(readable_item(to_text({.uri = "data/a b", .begin = 0, .end = 700, .version = "1-2"})),
            "data/a b, bytes 0 to 700,");
  EXPECT_EQ(readable_item(to_text({.uri = "data/a", .begin = 700})), "data/a, bytes 700 to the end,");
  EXPECT_EQ(readable_item(to_text({.uri = "data/a"})), "data/a");
  EXPECT_EQ(readable_item("model/x_S0"), "model/x_S0");
}

}  // namespace
}  // namespace pscloud

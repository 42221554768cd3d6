#include "io/file_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/memory_store.h"

namespace pscloud {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<std::vector<std::string>> find(std::vector<std::string> patterns) {
  MemoryStore store({{"data/part-001.gz", ""},
                     {"data/part-002", ""},
                     {"data/xpart-1", ""},
                     {"data/old/part-9", ""},
                     {"here", ""},
                     {"odd/a+b", ""},
                     {"odd/aab", ""},
                     {"odd/c++", ""},
                     {"odd/d(1)", ""},
                     {"s3://bucket/k/part-1", ""}});
  std::vector<std::string> uris;
  for (const FileInfo& file : TRY(find_files(store, patterns))) uris.push_back(file.uri);
  return uris;
}

TEST(FilePattern, TheWholeNameMustMatchInTheFolderItself) {
  EXPECT_THAT(find({"data/part.*"}).value(), ElementsAre("data/part-001.gz", "data/part-002"));
  EXPECT_THAT(find({"s3://bucket/k/part.*"}).value(), ElementsAre("s3://bucket/k/part-1"));
}

TEST(FilePattern, SeveralPatternsGiveEachFileOnceInOrder) {
  EXPECT_THAT(find({"data/xpart-1", "data/part-002", "data/part.*"}).value(),
              ElementsAre("data/part-001.gz", "data/part-002", "data/xpart-1"));
}

TEST(FilePattern, ABareNameIsInThisFolder) { EXPECT_THAT(find({"here"}).value(), ElementsAre("here")); }

TEST(FilePattern, OneThatMatchesNothingSaysWhatIsThere) {
  const Error error = find({"data/part.*", "data/day"}).error();
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_EQ(error.message, "data/day: no file matches \"day\" as a whole; data/ has part-001.gz, part-002, xpart-1");
  EXPECT_THAT(find({"nowhere/x"}).error().message, HasSubstr("nowhere/ has no files"));
}

TEST(FilePattern, OneThatMatchesNothingMayBeTheNameOfAFile) {
  EXPECT_THAT(find({"odd/d(1)"}).value(), ElementsAre("odd/d(1)"));
  EXPECT_THAT(find({"odd/c++"}).value(), ElementsAre("odd/c++"));  // no regular expression at all
  EXPECT_THAT(find({"odd/a+b"}).value(), ElementsAre("odd/aab"));
}

TEST(FilePattern, ABadExpressionIsRefused) {
  const Error error = find({"data/part(["}).error();
  EXPECT_EQ(error.code, Code::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("data/part([: \"part([\" is no regular expression"));
}

}  // namespace
}  // namespace pscloud

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "io/file_store.h"

namespace pscloud {
namespace {

TEST(UriStore, PathsAreOfThisMachine) {
  const std::string path = std::filesystem::path(testing::TempDir()) / "uri_store_test";
  const auto store = make_file_store();
  const auto output = store->create(path).value();
  ASSERT_TRUE(output->write("here"));
  ASSERT_TRUE(output->commit());
  EXPECT_EQ(store->stat(path).value().size, 4u);
  EXPECT_EQ(store->stat("file://" + path).value().size, 4u);
  std::filesystem::remove(path);
}

TEST(UriStore, AnUnknownSchemeIsRefusedByName) {
  const Error error = make_file_store()->stat("gs://bucket/key").error();
  EXPECT_EQ(error.code, Code::kInvalid);
  EXPECT_EQ(error.message, "gs://bucket/key: no store for gs://; there are s3://, http://, https:// and file://");
}

TEST(UriStore, WebServersAreReadOnlyAndHaveNoLists) {
  const auto store = make_file_store();
  EXPECT_EQ(store->create("https://host/file").error().code, Code::kInvalid);
  EXPECT_EQ(store->list("https://host/folder").error().message,
            "https://host/folder: web servers have no lists of files: name each file");
  EXPECT_EQ(store->stat("http://user:secret@host/").error().message.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace pscloud

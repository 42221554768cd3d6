#include "launch/bundle/image_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace pscloud {
namespace {

using testing::HasSubstr;

TEST(ImageArchive, TheSameFilesGiveTheSameBytes) {
  const ImageSpec spec{"a/b:1", {{"usr/bin/x", "program", 0755}, {"etc/y", "text"}}, {"PATH=/usr/bin"}, {"x"}};
  ImageSpec turned = spec;
  std::ranges::reverse(turned.files);
  const std::string archive = image_archive(spec).value();
  EXPECT_EQ(archive, image_archive(turned).value());
  EXPECT_EQ(archive.size() % 512, 0u);
  EXPECT_THAT(archive, HasSubstr(R"("RepoTags":["a/b:1"])"));
  // Folders come before what is in them.
  EXPECT_LT(archive.find("usr/bin/"), archive.find("usr/bin/x"));
}

TEST(ImageArchive, HasTheProgramThatMadeItAndItsLibraries) {
  const ImageSpec spec = own_image("me").value();
  const auto has = [&](std::string_view end) {
    return std::ranges::any_of(spec.files, [&](const TarFile& file) { return file.path.ends_with(end); });
  };
  EXPECT_TRUE(has("usr/bin/pscloud"));
  EXPECT_TRUE(has("lib/libc.so.6"));
  EXPECT_TRUE(has("ca-certificates.crt"));
  EXPECT_THAT(image_archive(spec).value(), HasSubstr(R"("RepoTags":["me:latest"])"));
}

TEST(ImageArchive, NamesHaveParts) {
  const ImageName name = split_image_name("registry.example:5000/team/pscloud:1");
  EXPECT_EQ(name.registry, "registry.example:5000");
  EXPECT_EQ(name.repository, "registry.example:5000/team/pscloud");
  EXPECT_EQ(name.tag, "1");
  EXPECT_EQ(split_image_name("localhost:5000/x").tag, "latest");
  EXPECT_EQ(split_image_name("team/x").registry, "");
  for (const char* good : {"x", "a/b:V1.0", "h:1/a", "localhost/x-y_z"}) EXPECT_TRUE(check_image_name(good)) << good;
  for (const char* bad : {"", "X", "a b", "a:", "/a", "a//b", "a/", "a:b c", "a@b"})
    EXPECT_FALSE(check_image_name(bad)) << bad;
}

}  // namespace
}  // namespace pscloud

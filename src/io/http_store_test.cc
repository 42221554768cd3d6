#include "io/http_store.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>

#include "io/file_pattern.h"
#include "io/scripted_http_server.h"

namespace pscloud {
namespace {

using testing::HasSubstr;

// A web server with one file at /file; `ranges`: gives parts of it.
struct WebFile {
  std::string contents;
  bool ranges = true;
  bool says_ranges = false;
  bool has_version = true;
  bool heads = true;  // answers HEAD
  std::atomic<int> version = 1;
  ScriptedHttpServer server = ScriptedHttpServer([this](const std::string& request) { return answer(request); });

  std::string uri() const { return server.url() + "/file"; }
  std::string answer(const std::string& request) const {
    if (request.find(" /file ") == std::string::npos && request.find(" /file?") == std::string::npos) {
      return ScriptedHttpServer::text(404, "");
    }
    if (!heads && request.starts_with("HEAD")) return ScriptedHttpServer::text(403, "");
    const std::string etag = has_version ? fmt::format("ETag: \"v{}\"\r\n", version.load()) : "";
    if (request.starts_with("HEAD")) {
      return fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{}{}\r\n", contents.size(), etag,
                         says_ranges ? "Accept-Ranges: bytes\r\n" : "");
    }
    size_t begin = 0;
    size_t last = 0;
    const size_t at = request.find("range: bytes=");
    if (!ranges || std::sscanf(request.c_str() + at, "range: bytes=%zu-%zu", &begin, &last) != 2) {
      return ScriptedHttpServer::text(200, contents, etag);
    }
    if (begin >= contents.size()) return ScriptedHttpServer::text(416, "");
    last = std::min(last, contents.size() - 1);
    return ScriptedHttpServer::text(
        206, contents.substr(begin, last + 1 - begin),
        fmt::format("{}Content-Range: bytes {}-{}/{}\r\n", etag, begin, last, contents.size()));
  }
};

std::string long_text() {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i) + "\n";
  return text;
}

TEST(HttpStore, ReadsFilesWithAndWithoutRanges) {
  const auto store = make_http_store();
  for (const bool ranges : {true, false}) {
    WebFile file{.contents = long_text(), .ranges = ranges};
    const FileInfo info = store->stat(file.uri()).value();
    EXPECT_EQ(info.size, file.contents.size());
    EXPECT_EQ(info.version, "v1");
    EXPECT_TRUE(info.version_is_global);
    EXPECT_EQ(info.gives_parts, ranges);
    EXPECT_EQ(read_all(*store->open(file.uri(), {}).value(), 1 << 30).value(), file.contents);
    EXPECT_EQ(read_all(*store->open(file.uri(), {.begin = 5, .end = 20}).value(), 99).value(),
              file.contents.substr(5, 15));
    EXPECT_EQ(read_all(*store->open(file.uri(), {.begin = 1 << 30}).value(), 99).value(), "");
  }
}

TEST(HttpStore, AServerThatSaysItGivesPartsIsBelieved) {
  WebFile file{.contents = long_text(), .says_ranges = true};
  EXPECT_TRUE(make_http_store()->stat(file.uri()).value().gives_parts);
  EXPECT_EQ(file.server.requests().size(), 1u);
}

TEST(HttpStore, ASizeAloneIsNoVersion) {
  WebFile file{.contents = "text", .has_version = false};
  const FileInfo info = make_http_store()->stat(file.uri()).value();
  EXPECT_EQ(info.version, "");
  EXPECT_FALSE(info.version_is_global);
}

TEST(HttpStore, AFileThatChangesIsNoticed) {
  WebFile file{.contents = long_text()};
  const auto store = make_http_store();
  const auto input = store->open(file.uri(), {.version = "v1"}).value();
  file.version = 2;
  const auto rest = read_all(*input, 1 << 30);
  ASSERT_FALSE(rest);
  EXPECT_EQ(rest.error().code, Code::kFailed);
  EXPECT_THAT(rest.error().message, HasSubstr("it was version v1, and is v2 now"));
  EXPECT_EQ(store->open(file.uri(), {.version = "v1"}).error().code, Code::kFailed);
}

TEST(HttpStore, ANameWithoutSpecialCharactersNeedsNoList) {
  WebFile file{.contents = "x"};
  const auto store = make_http_store();
  EXPECT_EQ(find_files(*store, {{file.uri()}}).value().size(), 1u);
  const std::string other = file.server.url() + "/other";
  const auto missing = find_files(*store, {{other}});
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_EQ(missing.error().message, other + ": no such file");
}

TEST(HttpStore, ANameStandsForItselfWhateverCharactersItHas) {
  WebFile file{.contents = "x"};
  const auto store = make_http_store();
  const std::string uri = file.uri() + "?sign=a+b/(c)";
  EXPECT_FALSE(is_file_pattern(uri));
  const std::vector<FileInfo> found = find_files(*store, {{uri}}).value();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].uri, uri);
  EXPECT_EQ(last_name(uri), "file");
  const std::string other = file.server.url() + "/other?(";
  EXPECT_EQ(find_files(*store, {{other}}).error().message, other + ": no such file");
}

TEST(HttpStore, AUrlThatIsSignedForGetAloneCanBeRead) {
  WebFile file{.contents = long_text(), .heads = false};
  const auto store = make_http_store();
  const FileInfo info = store->stat(file.uri()).value();
  EXPECT_EQ(info.size, file.contents.size());
  EXPECT_EQ(info.version, "v1");
  EXPECT_TRUE(info.gives_parts);
  EXPECT_EQ(read_all(*store->open(file.uri(), {.version = "v1"}).value(), 1 << 30).value(), file.contents);
  WebFile whole{.contents = long_text(), .ranges = false, .heads = false};
  EXPECT_THAT(store->stat(whole.uri()).error().message, HasSubstr("denied (status 403)"));
}

}  // namespace
}  // namespace pscloud

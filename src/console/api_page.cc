#include <algorithm>
#include <string_view>
#include <utility>

#include "console/api_parts.h"
#include "console/asset.h"
#include "console/reply.h"

namespace pscloud {
namespace {

const char* content_type_of(std::string_view name) {
  constexpr std::pair<std::string_view, const char*> kTypes[] = {
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".svg", "image/svg+xml"},
  };
  for (const auto& [ending, type] : kTypes) {
    if (name.ends_with(ending)) return type;
  }
  return "application/octet-stream";
}

}  // namespace

HttpReply page_reply(const HttpCall& call) {
  constexpr std::string_view kFolder = "/assets/";
  const std::string_view name =
      call.path == "/" ? std::string_view("index.html") : std::string_view(call.path).substr(kFolder.size());
  const auto asset = std::ranges::find(assets(), name, &Asset::name);
  if (asset == assets().end()) return error_reply(404, "the page has no such file");
  HttpReply reply{.status = 200, .content_type = content_type_of(name)};
  // The next version of the program has other files under the same names: it is asked each time.
  reply.headers = {{"ETag", std::string(asset->etag)}, {"Cache-Control", "no-cache"}};
  const std::string* known = call.find_header("If-None-Match");
  if (known != nullptr && *known == asset->etag) {
    reply.status = 304;
  } else {
    reply.body = asset->bytes;
  }
  return reply;
}

}  // namespace pscloud

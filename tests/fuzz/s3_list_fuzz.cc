// What a store answers when it is asked for a list of objects, or refuses something.
#include <string>
#include <string_view>

#include "base/check.h"
#include "io/s3_error.h"
#include "io/s3_store.h"
#include "io/xml.h"

namespace pscloud {
namespace {

void run(std::string_view input) {
  const auto page = parse_s3_page(input);
  if (page) {
    CHECK(parse_xml(input).has_value());
    for (const S3Page::Object& object : page->objects) CHECK(object.etag.find(' ') == std::string::npos);
  } else {
    CHECK(page.error().code == Code::kCorrupt && !page.error().message.empty());
  }
  const Error error = s3_error({.name = {.bucket = "bucket", .key = "key"}, .permission = "s3:GetObject"},
                               {.status = 400, .body = std::string(input)}, {});
  CHECK(error.message.starts_with("s3://bucket/key: "));
}

}  // namespace
}  // namespace pscloud

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pscloud::run({reinterpret_cast<const char*>(data), size});
  return 0;
}

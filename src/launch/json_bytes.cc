#include "launch/json_bytes.h"

#include "base/base64.h"
#include "base/text.h"

namespace pscloud {
namespace {

constexpr const char* kBase64 = "base64";

}  // namespace

void write_bytes(JsonWriter& json, std::string_view bytes) {
  if (is_utf8(bytes)) {
    json.value(bytes);
  } else {
    json.begin_object().field(kBase64, base64(bytes)).end_object();
  }
}

std::optional<std::string> read_bytes(const JsonValue& value) {
  if (value.is(JsonValue::Kind::kString)) return value.text();
  if (!value[kBase64].is(JsonValue::Kind::kString)) return {};
  return parse_base64(value[kBase64].text());
}

}  // namespace pscloud

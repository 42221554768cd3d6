#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/json_value.h"

namespace pscloud {

// What users and programs call text may be any bytes, and JSON has only UTF-8: a string where that is enough, else
// {"base64": "..."}. So arguments, values, paths and output arrive as they were.
void write_bytes(JsonWriter& json, std::string_view bytes);

// Nothing if it is neither of them.
std::optional<std::string> read_bytes(const JsonValue& value);

}  // namespace pscloud

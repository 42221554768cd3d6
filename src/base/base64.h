#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pscloud {

// RFC 4648, with '=' at the end.
std::string base64(std::string_view bytes);
// The same with '-' and '_' in place of '+' and '/'.
std::string base64_url(std::string_view bytes);

// Nothing if it is not base64; line ends are passed over.
std::optional<std::string> parse_base64(std::string_view text);

}  // namespace pscloud

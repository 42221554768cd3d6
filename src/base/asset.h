#pragma once

#include <string_view>

namespace pscloud {

// A file that stands in the program itself (cmake/embed.cmake).
struct Asset {
  std::string_view name;  // "app.js"
  std::string_view etag;  // differs once the file does, with its quotes
  std::string_view bytes;
};

}  // namespace pscloud

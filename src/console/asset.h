#pragma once

#include <span>
#include <string_view>

namespace pscloud {

// A file of the page, which stands in the program itself (cmake/embed.cmake).
struct Asset {
  std::string_view name;  // "app.js"
  std::string_view etag;  // differs once the file does, with its quotes
  std::string_view bytes;
};

// All of them, by name.
std::span<const Asset> assets();

}  // namespace pscloud

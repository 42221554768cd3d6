#pragma once

#include <fmt/core.h>

#include <string>

// CHECK is for our own broken assumptions: it prints one line and ends the process with a core dump.
// What can fail for the user, the network or the disk returns a Result instead.

namespace pscloud::detail {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);
}  // namespace pscloud::detail

// CHECK(a <= b, "a is {}", a): the message is optional and built only on failure.
#define CHECK(condition, ...)                                                                         \
  do {                                                                                                \
    if (!(condition)) [[unlikely]]                                                                    \
      ::pscloud::detail::check_failed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
  } while (false)

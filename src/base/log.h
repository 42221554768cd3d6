#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace pscloud {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kSilent };

// Lines for people on stderr: "21:04:05.123 W worker 1: text". One line a call; control characters in `text` are
// shown escaped, so that bytes from outside cannot forge lines. Thread-safe.
void log_line(LogLevel level, std::string_view text);

// Lines below this level are dropped; kInfo at first.
void set_log_level(LogLevel level);
bool log_enabled(LogLevel level);

// What every line of this process begins with after the time, e.g. "worker 1".
void set_log_name(std::string_view name);

template <class... Args>
void log_debug(fmt::format_string<Args...> text, Args&&... args) {
  if (log_enabled(LogLevel::kDebug)) log_line(LogLevel::kDebug, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void log_info(fmt::format_string<Args...> text, Args&&... args) {
  if (log_enabled(LogLevel::kInfo)) log_line(LogLevel::kInfo, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> text, Args&&... args) {
  if (log_enabled(LogLevel::kWarning)) log_line(LogLevel::kWarning, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> text, Args&&... args) {
  if (log_enabled(LogLevel::kError)) log_line(LogLevel::kError, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace pscloud

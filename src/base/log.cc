#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <memory>

#include "base/mutex.h"
#include "base/text.h"

namespace pscloud {
namespace {

// The log of this process. It is never destroyed, since threads and destructors may log to the very end.
struct Log {
  Log() : lines("pscloud", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    lines.set_pattern("%H:%M:%S.%e %L %v");
    lines.set_level(spdlog::level::info);
  }

  spdlog::logger lines;
  Mutex mutex;
  std::string prefix GUARDED_BY(mutex);  // the name and ": ", or nothing
};

Log& process_log() {
  static Log& log = *new Log;
  return log;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
    case LogLevel::kSilent: return spdlog::level::off;
  }
  return spdlog::level::err;
}

}  // namespace

void log_line(LogLevel level, std::string_view text) {
  Log& log = process_log();
  std::string line;
  {
    MutexLock lock(log.mutex);
    line = log.prefix;
  }
  line += escape_controls(text);
  log.lines.log(to_spdlog(level), line);
}

void set_log_level(LogLevel level) { process_log().lines.set_level(to_spdlog(level)); }

bool log_enabled(LogLevel level) { return process_log().lines.should_log(to_spdlog(level)); }

void set_log_name(std::string_view name) {
  std::string prefix = name.empty() ? "" : escape_controls(name) + ": ";
  Log& log = process_log();
  MutexLock lock(log.mutex);
  log.prefix = std::move(prefix);
}

}  // namespace pscloud

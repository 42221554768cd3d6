#include "base/log.h"

#include <atomic>
#include <cstdio>

#include "base/mutex.h"

namespace pscloud {
namespace {

std::atomic<LogLevel> log_level{LogLevel::kInfo};
Mutex name_mutex;
std::string log_name GUARDED_BY(name_mutex);

}  // namespace

void log_line(LogLevel level, std::string_view text) {
  std::string line(1, "DIWE"[static_cast<int>(level)]);
  {
    MutexLock lock(name_mutex);
    if (!log_name.empty()) line += ' ' + log_name + ':';
  }
  line += ' ';
  for (const char c : text) line += static_cast<unsigned char>(c) < ' ' || c == 127 ? '?' : c;
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void set_log_level(LogLevel level) { log_level = level; }
bool log_enabled(LogLevel level) { return level >= log_level; }

void set_log_name(std::string name) {
  MutexLock lock(name_mutex);
  log_name = std::move(name);
}

}  // namespace pscloud

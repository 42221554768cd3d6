#include "launch/process/own_program.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>

namespace pscloud {
namespace {

constexpr const char* kSelf = "/proc/self/exe";

// The path that the kernel has for the running program; a loader's, if that was called to run it.
std::string called_program() {
  std::array<char, 4096> path{};
  const ssize_t size = ::readlink(kSelf, path.data(), path.size());
  if (size <= 0 || size == static_cast<ssize_t>(path.size())) return kSelf;
  std::string text(path.data(), static_cast<size_t>(size));
  // A file that was replaced while it ran still runs through this name.
  return text.ends_with(" (deleted)") ? kSelf : text;
}

// The file that this function was mapped from.
std::string mapped_binary() {
  const auto here = reinterpret_cast<uintptr_t>(&mapped_binary);
  std::ifstream maps("/proc/self/maps");
  // "55d0c0a000-55d0c0b000 r-xp 00000000 fe:00 1234   /usr/bin/pscloud"
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    const size_t dash = line.find('-');
    const char* last = line.data() + line.size();
    if (dash == std::string::npos || std::from_chars(line.data(), last, begin, 16).ec != std::errc{} ||
        std::from_chars(line.data() + dash + 1, last, end, 16).ec != std::errc{}) {
      continue;
    }
    const size_t path = line.find('/');
    if (begin <= here && here < end && path != std::string::npos) return line.substr(path);
  }
  return "";
}

}  // namespace

const char* own_version() { return PSCLOUD_VERSION; }

std::string own_binary() {
  std::string mapped = mapped_binary();
  return mapped.empty() || mapped.ends_with(" (deleted)") ? called_program() : mapped;
}

std::vector<std::string> own_program() {
  const std::string called = called_program();
  const std::string binary = own_binary();
  if (binary == called || !std::filesystem::path(called).filename().string().starts_with("ld-")) return {called};
  return {called, "--library-path", std::filesystem::path(binary).parent_path().string(), "--argv0", "pscloud", binary};
}

}  // namespace pscloud

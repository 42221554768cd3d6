#pragma once

#include <cstdint>
#include <string_view>

namespace pscloud {

// Names one row of a table. Every 64-bit value is a key, the largest too.
using Key = uint64_t;

// Names a table on the wire: a hash of its name (never 0).
using TableId = uint32_t;

enum class Role : uint8_t { kScheduler = 1, kServer = 2, kWorker = 3 };

constexpr std::string_view role_name(Role role) {
  switch (role) {
    case Role::kScheduler: return "scheduler";
    case Role::kServer: return "server";
    case Role::kWorker: return "worker";
  }
  return "unknown";
}

}  // namespace pscloud

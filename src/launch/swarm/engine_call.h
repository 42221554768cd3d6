#pragma once

#include <span>

#include "base/asset.h"

namespace pscloud {

// The program of engine_call.cc, for the processor that we run on: one file.
std::span<const Asset> engine_calls();

}  // namespace pscloud

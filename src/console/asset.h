#pragma once

#include <span>

#include "base/asset.h"

namespace pscloud {

// The files of the page, by name.
std::span<const Asset> assets();

}  // namespace pscloud

#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace pscloud {

// CRC-32C (Castagnoli), the checksum of TFRecord files, RFC 3720 and others.
uint32_t crc32c(Bytes bytes);

}  // namespace pscloud

#pragma once

#include <cstddef>
#include <span>

#include "net/frame.h"
#include "pscloud/error.h"
#include "pscloud/table.h"

namespace pscloud {

// What a worker checks before it sends anything. kInvalid names what is wrong and where.

Error no_such_row(const TableSpec& spec, uint64_t row);
Result<> check_request_keys(const TableSpec& spec, std::span<const Key> keys);

// Of a push, pull or push-pull of so many rows: the floats it brings, and those it has room for.
Result<> check_request_sizes(const TableSpec& spec, FrameType type, size_t rows, size_t values, size_t out);

// Rows to be set. How much state there is the servers know.
Result<> check_set_request(const TableSpec& spec, std::span<const Key> keys, size_t floats, ScanKind kind);

}  // namespace pscloud

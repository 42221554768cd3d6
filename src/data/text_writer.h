#pragma once

#include <cstdint>
#include <string>

#include "data/parser.h"
#include "data/row_block.h"
#include "pscloud/error.h"

namespace pscloud {

// Appends a line or a record for each row, in a format that the parser of the same name reads. `first_number` is the
// number of the first row, for formats that have one. Labels above 0 are 1; the others are 0, or -1 where the format
// knows no 0. kInvalid for rows that the format cannot hold.
Result<> append_text(ExampleFormat format, const RowSlice& rows, uint64_t first_number, std::string& text);

}  // namespace pscloud

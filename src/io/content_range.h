#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/http_client.h"
#include "pscloud/error.h"

namespace pscloud {

// "bytes=5-9" for the bytes from `begin` to before `end`.
std::string range_header(uint64_t begin, uint64_t end);

// The size of the whole file, as an answer with a part of it says: "bytes 5-9/100". kCorrupt if the answer is no part,
// or another than that from `begin` on, or not all of it up to `end` or the file's end.
Result<uint64_t> whole_size(const HttpResponse& response, uint64_t begin, uint64_t end);

// A whole number and nothing else.
Result<uint64_t> whole_number(std::string_view text);

// What an ETag is in quotes, weak or not; empty if there is none that can be used.
std::string version_of_etag(std::string_view etag);

}  // namespace pscloud

#pragma once

#include <string>
#include <string_view>

#include "net/http_server.h"
#include "pscloud/error.h"

namespace pscloud {

HttpReply json_reply(std::string text, int status = 200);

// {"error": message}.
HttpReply error_reply(int status, std::string_view message);
// The status that an error is in HTTP.
HttpReply error_reply(const Error& error);

// A whole number of the query, `otherwise` if it is not there. kInvalid if it is none from `low` to `high`.
Result<int64_t> number_of(const HttpCall& call, std::string_view name, int64_t otherwise, int64_t low, int64_t high);

}  // namespace pscloud

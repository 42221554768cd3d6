#pragma once

#include <string>

#include "base/json_value.h"
#include "launch/plan.h"

namespace pscloud {

// A job with all that is in it, secrets too, on its way to another launcher: over a stream that nobody else reads, and
// never to a file (job_file.h is what users write).
std::string job_wire_json(const Job& job);
Result<Job> parse_job_wire(const JsonValue& value);

}  // namespace pscloud

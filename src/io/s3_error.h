#pragma once

#include <string>

#include "io/s3_client.h"

namespace pscloud {

// Who asked, for messages.
struct S3Caller {
  std::string region;
  std::string host;
  std::string keys;  // where they come from
};

// The <Code> of a body that is an error; empty if it is none.
std::string s3_error_code(const HttpResponse& response);

// What S3 refuses, in one line that says what to do.
Error s3_error(const S3Call& call, const HttpResponse& response, const S3Caller& caller);

}  // namespace pscloud

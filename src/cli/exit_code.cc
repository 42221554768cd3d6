#include "cli/exit_code.h"

#include <cstdio>

#include "base/text.h"

namespace pscloud {

int exit_code(Code code) {
  switch (code) {
    case Code::kInvalid:
    case Code::kNotFound: return kExitUsage;
    case Code::kUnavailable:
    case Code::kTimeout: return kExitUnreachable;
    case Code::kCorrupt:
    case Code::kFailed: return kExitFailed;
  }
  return kExitFailed;
}

int fail(const Error& error) {
  fmt::print(stderr, "pscloud: {}\n", escape_controls(error.message));
  return exit_code(error.code);
}

int fail_interrupted() {
  fmt::print(stderr, "pscloud: interrupted\n");
  return kExitInterrupted;
}

int fail_usage(std::string_view message, std::string_view hint) {
  fmt::print(stderr, "pscloud: {}\n  {}\n", escape_controls(message), hint);
  return kExitUsage;
}

}  // namespace pscloud

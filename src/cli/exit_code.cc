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

// Not by fmt::print, which throws if nobody takes it: what has to be undone would not be.
void say(std::string_view text) { std::fputs(fmt::format("pscloud: {}\n", escape_controls(text)).c_str(), stderr); }

int fail(const Error& error) {
  say(error.message);
  return exit_code(error.code);
}

int fail_interrupted() {
  say("interrupted");
  return kExitInterrupted;
}

int fail_usage(std::string_view message, std::string_view hint) {
  say(message);
  std::fputs(fmt::format("  {}\n", hint).c_str(), stderr);
  return kExitUsage;
}

}  // namespace pscloud

#pragma once

#include <string_view>

#include "pscloud/error.h"

namespace pscloud {

// The same for every verb; the help of `pscloud` lists them.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitUnreachable = 3;
inline constexpr int kExitInterrupted = 130;

int exit_code(Code code);

// Writes "pscloud: text" to stderr, on one line. If that is gone nobody can be told: it is no error.
void say(std::string_view text);

// Writes "pscloud: message" to stderr, on one line; returns the exit code of the error.
int fail(const Error& error);

// The same for a wrong use, with what to do next.
int fail_usage(std::string_view message, std::string_view hint);

// The same when the user ended it.
int fail_interrupted();

}  // namespace pscloud

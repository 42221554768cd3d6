#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "pscloud/error.h"

namespace pscloud {

// How a program that somebody else wrote (sbatch, condor_q) has ended.
struct ToolOutput {
  int code = 0;  // 128 + signal
  std::string out;
  std::string err;
};

// Runs a program of PATH with `words` (the first is its name), without a shell, gives it `input`, and waits for it. It
// speaks English (LC_ALL=C), because its words are read. kNotFound if there is no such program, kTimeout if it has not
// ended in time: it was killed then, with its process group. So it is when a stop is asked for, within a moment. It
// dies with the thread that calls this.
Result<ToolOutput> run_tool(const std::vector<std::string>& words, std::string_view input,
                            std::chrono::milliseconds timeout, const std::stop_token& stop = {});

// The same when anything but code 0 is an error: kUnavailable with what it wrote.
Result<std::string> tool_answer(const std::vector<std::string>& words, std::string_view input,
                                std::chrono::milliseconds timeout);

// What a tool has listed: its lines, without spaces around them and without empty ones.
std::vector<std::string> lines_of_tool(std::string_view text);

}  // namespace pscloud

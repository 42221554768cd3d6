#pragma once

namespace pscloud {

// Does what a command line asks for and returns the exit code.
int run_command_line(int argc, const char* const* argv);

}  // namespace pscloud

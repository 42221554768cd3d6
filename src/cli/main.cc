#include <cstdio>
#include <exception>

#include "cli/command_line.h"
#include "cli/exit_code.h"

int main(int argc, char** argv) {
  try {
    const int code = pscloud::run_command_line(argc, argv);
    // A result that nobody got was not done: a full disk or a closed pipe shows only here.
    if (std::fflush(stdout) == 0 || code != pscloud::kExitDone) return code;
    std::perror("pscloud: cannot write to stdout");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pscloud: %s\n", error.what());
  }
  return pscloud::kExitFailed;
}

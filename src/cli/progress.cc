#include "cli/progress.h"

#include <fmt/core.h>
#include <unistd.h>

namespace pscloud {

ProgressLine::ProgressLine(Elsewhere elsewhere)
    : ProgressLine(stderr, ::isatty(STDERR_FILENO) != 0, elsewhere, own_clock_) {}

ProgressLine::ProgressLine(std::FILE* out, bool is_terminal, Elsewhere elsewhere, const Clock& clock)
    : out_(out),
      is_terminal_(is_terminal),
      elsewhere_(elsewhere),
      clock_(clock),
      next_line_(clock.now() + kBetweenLines) {}

ProgressLine::~ProgressLine() {
  if (is_terminal_) fmt::print(out_, "\r\033[K");
}

void ProgressLine::show(std::string_view text) {
  if (is_terminal_) {
    fmt::print(out_, "\r\033[K{}", text);
    return;
  }
  if (elsewhere_ == Elsewhere::kSilent || text.empty()) return;
  const Time now = clock_.now();
  if (now < next_line_) return;
  next_line_ = now + kBetweenLines;
  fmt::print(out_, "{}\n", text);
}

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <cstdio>
#include <string_view>

#include "base/clock.h"

namespace pscloud {

// A line on stderr that tells a person how far something is. On a terminal it stands there until the next, and is wiped
// away at the end. Elsewhere it is silent, or a plain line each ten seconds. One thread.
class ProgressLine {
 public:
  enum class Elsewhere : uint8_t { kSilent, kLines };
  static constexpr std::chrono::seconds kBetweenLines{10};

  explicit ProgressLine(Elsewhere elsewhere = Elsewhere::kSilent);
  // Somewhere else than on stderr. Both are borrowed.
  ProgressLine(std::FILE* out, bool is_terminal, Elsewhere elsewhere, const Clock& clock);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Empty: there is nothing to tell for now.
  void show(std::string_view text);

 private:
  const SystemClock own_clock_;
  std::FILE* const out_;
  const bool is_terminal_;
  const Elsewhere elsewhere_;
  const Clock& clock_;
  Time next_line_;
};

}  // namespace pscloud

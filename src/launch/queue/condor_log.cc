#include "launch/queue/condor_log.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"

namespace pscloud {
namespace {

struct KnownEvent {
  int number;
  CondorEvent::Kind kind;
};
// The numbers of HTCondor's manual, "job event log codes".
constexpr std::array kKnownEvents = {
    KnownEvent{0, CondorEvent::Kind::kSubmitted},     KnownEvent{1, CondorEvent::Kind::kRunning},
    KnownEvent{2, CondorEvent::Kind::kFailed},        KnownEvent{4, CondorEvent::Kind::kEvicted},
    KnownEvent{5, CondorEvent::Kind::kEnded},         KnownEvent{7, CondorEvent::Kind::kFailed},
    KnownEvent{9, CondorEvent::Kind::kRemoved},       KnownEvent{12, CondorEvent::Kind::kHeld},
    KnownEvent{22, CondorEvent::Kind::kDisconnected}, KnownEvent{23, CondorEvent::Kind::kReconnected},
    KnownEvent{24, CondorEvent::Kind::kEvicted},
};

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    lines.push_back(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.size(), lines.back().size() + 1));
  }
  return lines;
}

// The machine of "001 ... Job executing on host: <10.79.0.2:9618?...>" and its "SlotName: slot1_1@host2".
std::string machine_of(const std::vector<std::string_view>& lines) {
  for (const std::string_view line : lines) {
    const std::string_view text = trimmed(line);
    constexpr std::string_view kSlot = "SlotName:";
    if (!text.starts_with(kSlot)) continue;
    const std::string_view slot = trimmed(text.substr(kSlot.size()));
    return std::string(slot.substr(slot.find('@') == std::string_view::npos ? 0 : slot.find('@') + 1));
  }
  const size_t begin = lines[0].find('<');
  const size_t end = lines[0].find_first_of(":?>", begin == std::string_view::npos ? begin : begin + 1);
  if (begin == std::string_view::npos || end == std::string_view::npos) return {};
  return std::string(lines[0].substr(begin + 1, end - begin - 1));
}

// "012 (17.003.000) 2026-11-17 09:20:00 Job was held.", then lines that say more.
std::optional<CondorEvent> parse_event(std::string_view text) {
  const std::vector<std::string_view> lines = lines_of(text);
  if (lines.empty() || lines[0].size() < 5) return {};
  int number = 0;
  CondorEvent event;
  const size_t open = lines[0].find('('), dot = lines[0].find('.', open), second = lines[0].find('.', dot + 1);
  if (open == std::string_view::npos || dot == std::string_view::npos || second == std::string_view::npos ||
      !parse_number(lines[0].substr(0, 3), 0, 999, number) ||
      !parse_number(lines[0].substr(dot + 1, second - dot - 1), 0, 1 << 20, event.process)) {
    return {};
  }
  const auto known = std::ranges::find(kKnownEvents, number, &KnownEvent::number);
  if (known == kKnownEvents.end()) return {};
  event.kind = known->kind;
  if (event.kind == CondorEvent::Kind::kRunning) {
    event.text = machine_of(lines);
  } else if (lines.size() > 1) {
    event.text = trimmed(lines[1]);
  }
  return event;
}

}  // namespace

std::vector<CondorEvent> CondorLog::read(std::string_view more) {
  constexpr std::string_view kEnd = "...\n";
  rest_ += more;
  std::vector<CondorEvent> events;
  size_t begin = 0, line = 0;
  while (line < rest_.size()) {
    const size_t next = rest_.find('\n', line);
    if (next == std::string::npos) break;
    if (std::string_view(rest_).substr(line, next + 1 - line) == kEnd) {
      if (auto event = parse_event(std::string_view(rest_).substr(begin, line - begin))) {
        events.push_back(std::move(*event));
      }
      begin = next + 1;
    }
    line = next + 1;
  }
  rest_.erase(0, begin);
  return events;
}

}  // namespace pscloud

#include "launch/swarm/swarm_log.h"

#include <fmt/format.h>

#include <cstdio>
#include <ctime>

namespace pscloud {
namespace {

constexpr size_t kHeaderBytes = 8;
constexpr size_t kFrameBytesMax = 16 << 20;
constexpr int64_t kOverlapSeconds = 5;

}  // namespace

void SwarmLog::begin_stream() {
  buffer_.clear();
  for (Pipe& pipe : pipes_) pipe.seen = 0;
}

Result<> SwarmLog::take(std::string_view bytes, std::vector<TaskEvent>& events) {
  buffer_ += bytes;
  size_t at = 0;
  while (buffer_.size() - at >= kHeaderBytes) {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(buffer_[at + i]); };
    const size_t length = size_t{byte(4)} << 24 | size_t{byte(5)} << 16 | size_t{byte(6)} << 8 | size_t{byte(7)};
    if (byte(0) > 2 || byte(1) != 0 || byte(2) != 0 || byte(3) != 0 || length > kFrameBytesMax) {
      return corrupt("the log of {} comes in another form than that of Docker", task_.text());
    }
    if (buffer_.size() - at < kHeaderBytes + length) break;
    const bool is_stderr = byte(0) == 2;
    const std::string_view frame = std::string_view(buffer_).substr(at + kHeaderBytes, length);
    take_frame(pipes_[is_stderr ? 1 : 0], is_stderr, frame, events);
    at += kHeaderBytes + length;
  }
  buffer_.erase(0, at);
  return {};
}

void SwarmLog::take_frame(Pipe& pipe, bool is_stderr, std::string_view frame, std::vector<TaskEvent>& events) {
  const size_t space = frame.find(' ');
  if (space == std::string_view::npos) return;
  const std::string_view time = frame.substr(0, space);
  frame.remove_prefix(space + 1);
  // Times of one pipe never go back, and have all the same length.
  if (time < pipe.last) return;
  if (time == pipe.last) {
    if (++pipe.seen <= pipe.count) return;
  } else {
    pipe.last = time;
    pipe.count = 0;
    pipe.seen = 1;
  }
  ++pipe.count;
  pipe.lines.add(frame);
  give_lines(pipe, is_stderr, events);
}

void SwarmLog::give_lines(Pipe& pipe, bool is_stderr, std::vector<TaskEvent>& events) {
  while (auto line = pipe.lines.next()) {
    events.push_back({.kind = TaskEvent::Kind::kLine,
                      .task = task_,
                      .text = std::move(line->text),
                      .is_stderr = is_stderr,
                      .continues = line->continues});
  }
}

void SwarmLog::end(std::vector<TaskEvent>& events) {
  for (const bool is_stderr : {false, true}) {
    std::string rest = pipes_[is_stderr ? 1 : 0].lines.rest();
    if (rest.empty()) continue;
    events.push_back({.kind = TaskEvent::Kind::kLine, .task = task_, .text = std::move(rest), .is_stderr = is_stderr});
  }
}

std::string SwarmLog::since() const {
  const std::string& last = std::max(pipes_[0].last, pipes_[1].last);
  std::tm time{};
  if (std::sscanf(last.c_str(), "%d-%d-%dT%d:%d:%d", &time.tm_year, &time.tm_mon, &time.tm_mday, &time.tm_hour,
                  &time.tm_min, &time.tm_sec) != 6) {
    return "0";
  }
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  return std::to_string(static_cast<int64_t>(::timegm(&time)) - kOverlapSeconds);
}

}  // namespace pscloud

#include "launch/agent/stream_link.h"

#include <fmt/core.h>

namespace pscloud {

StreamLink::StreamLink(Fd in, Fd out, int silence_ms, Answer answer, Time now)
    : stream_(std::move(in), std::move(out), kLauncherLineMax),
      silence_(silence_ms),
      answer_(std::move(answer)),
      heard_(now) {}

LauncherWord StreamLink::gone(std::string why) {
  gone_ = true;
  LauncherWord word;
  word.kind = LauncherWord::Kind::kGone;
  word.why = std::move(why);
  return word;
}

std::optional<LauncherWord> StreamLink::next(Time now) {
  if (gone_) return std::nullopt;
  while (auto text = stream_.next_line()) {
    heard_ = now;
    auto line = parse_launcher_line(*text);
    if (!line) return gone(fmt::format("the launcher said what cannot be understood: {}", line.error().message));
    if (line->question.is(JsonValue::Kind::kObject)) {
      stream_.send_line(answer_line(answer_(line->question)));
      // To find the answer may have taken long, and what the launcher said meanwhile is not read yet.
      heard_ = now = std::max(now, std::chrono::steady_clock::now());
    }
    if (line->word) return std::move(line->word);
  }
  if (stream_.broken()) return gone(*stream_.broken());
  if (silence_.count() > 0 && now - heard_ >= silence_) {
    return gone(fmt::format("the launcher has said nothing for {} s", silence_.count() / 1000));
  }
  return std::nullopt;
}

AgentLink::Time StreamLink::ask_again(Time now) const {
  // Far enough: a stream says by its descriptor when there is something.
  return silence_.count() > 0 && !gone_ ? heard_ + silence_ : now + std::chrono::hours(1);
}

bool StreamLink::flush(Time deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return !gone_ && stream_.flush(static_cast<int>(std::max<int64_t>(left, 0)));
}

}  // namespace pscloud

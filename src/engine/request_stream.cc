#include "engine/request_stream.h"

namespace pscloud {

RequestStream::Verdict RequestStream::offer(Frame& frame, uint64_t elsewhere, bool unbounded) {
  const uint64_t seq = frame.header.seq;
  if (seq <= accepted_) return Verdict::kRepeated;
  // A worker that keeps to its credit always fits: this stops only one that does not.
  const uint64_t held = held_bytes_ + elsewhere;
  const bool fits = held == 0 || held + frame.size() <= limit_.bytes;
  if (seq == accepted_ + 1) return fits || unbounded || elsewhere == 0 ? Verdict::kNext : Verdict::kDropped;
  if (held_.contains(seq)) return Verdict::kHeld;
  const bool near = seq - accepted_ <= limit_.requests;
  if ((!fits || !near) && !unbounded) return Verdict::kDropped;
  held_bytes_ += frame.size();
  held_.emplace(seq, std::move(frame));
  return Verdict::kHeld;
}

std::optional<Frame> RequestStream::take_next() {
  const auto next = held_.find(accepted_ + 1);
  if (next == held_.end()) return std::nullopt;
  Frame frame = std::move(next->second);
  held_bytes_ -= frame.size();
  held_.erase(next);
  return frame;
}

}  // namespace pscloud

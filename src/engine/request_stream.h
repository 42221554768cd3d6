#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "engine/message.h"
#include "net/frame.h"

namespace pscloud {

// The requests of one session at one owner, put in order: each is taken in once, in the order of its number,
// however often and in whatever order its frames arrive. What came too early is held, within the credit.
class RequestStream {
 public:
  explicit RequestStream(Credit limit) : limit_(limit) {}

  enum class Verdict {
    kNext,      // do it now, then accept()
    kRepeated,  // it was accepted before: only its answer may have been lost
    kHeld,      // it came too early and is kept
    kDropped,   // too early and no room: it will be sent again
  };
  // `elsewhere`: bytes of this session that the owner holds beside those held here. Takes `frame` only if kHeld.
  Verdict offer(Frame& frame, uint64_t elsewhere, bool unbounded);

  // The next request has been taken in.
  void accept() { ++accepted_; }
  uint64_t accepted() const { return accepted_; }

  // The next request, if it is among those held.
  std::optional<Frame> take_next();

  uint64_t held_bytes() const { return held_bytes_; }
  const Credit& limit() const { return limit_; }

 private:
  const Credit limit_;
  uint64_t accepted_ = 0;
  uint64_t held_bytes_ = 0;
  std::map<uint64_t, Frame> held_;
};

}  // namespace pscloud

#include "io/read_ahead.h"

#include <algorithm>
#include <cstring>

namespace pscloud {

ReadAheadInput::ReadAheadInput(std::string first, const ByteRange& range, Fetch fetch)
    : fetch_(std::move(fetch)),
      end_(range.end),
      ahead_end_(std::min(range.ahead_end, range.end)),
      block_bytes_(std::clamp<uint64_t>(range.ahead_bytes_max / kBlocksAhead, 1, kBlockBytes)),
      block_(std::move(first)),
      asked_(range.begin + block_.size()),
      next_bytes_(std::min(kFirstBlockBytes, block_bytes_)) {}

ReadAheadInput::~ReadAheadInput() { stop_.request_stop(); }

// Behind what was expected nothing is asked for but what is `needed` now.
void ReadAheadInput::ask_ahead(bool needed) {
  while (asked_ < end_ && ahead_.size() < kBlocksAhead && (asked_ < ahead_end_ || (needed && ahead_.empty()))) {
    const bool expected = asked_ < ahead_end_;
    const uint64_t bytes = expected ? next_bytes_ : kFirstBlockBytes;
    const uint64_t until = std::min(expected ? ahead_end_ : end_, asked_ + bytes);
    next_bytes_ = std::min(block_bytes_, next_bytes_ * 2);
    ahead_.push_back(std::async(std::launch::async, fetch_, asked_, until, stop_.get_token()));
    asked_ = until;
  }
}

Result<size_t> ReadAheadInput::read(std::span<char> out) {
  if (out.empty()) return 0;
  while (used_ == block_.size()) {
    ask_ahead(true);
    if (ahead_.empty()) return 0;
    block_ = TRY(ahead_.front().get());
    ahead_.pop_front();
    used_ = 0;
    ask_ahead(false);
  }
  const size_t count = std::min(out.size(), block_.size() - used_);
  std::memcpy(out.data(), block_.data() + used_, count);
  used_ += count;
  return count;
}

}  // namespace pscloud

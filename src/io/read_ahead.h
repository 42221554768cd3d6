#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <stop_token>
#include <string>
#include <utility>

#include "io/file_store.h"

namespace pscloud {

// Reads a file of a distant store in blocks, several of them at the same time and before they are asked for: one
// connection rarely fills a link, and a round trip costs as much as a megabyte. Holds at most kBlocksAhead + 1 blocks,
// which are smaller if less is to be read ahead.
class ReadAheadInput final : public Input {
 public:
  static constexpr size_t kBlockBytes = 4 << 20;
  static constexpr size_t kFirstBlockBytes = 256 << 10;  // who looks at the head of a file should not wait for more
  static constexpr size_t kBlocksAhead = 4;

  // The bytes from begin to end, all of them; waits not without a limit, and not after `stop`. Called by several
  // threads.
  using Fetch = std::function<Result<std::string>(uint64_t begin, uint64_t end, std::stop_token stop)>;

  // `first` are the bytes from range.begin on; range.end is not behind the end of the file.
  ReadAheadInput(std::string first, const ByteRange& range, Fetch fetch);
  ~ReadAheadInput() override;

  Result<size_t> read(std::span<char> out) override;

 private:
  void ask_ahead(bool needed);

  const Fetch fetch_;
  const uint64_t end_;
  const uint64_t ahead_end_;
  const size_t block_bytes_;
  std::string block_;
  size_t used_ = 0;        // of it
  uint64_t asked_;         // up to here
  size_t next_bytes_;      // of the next block: small at first, for many a reader stops soon
  std::stop_source stop_;  // the destructors of the futures wait for their threads
  std::deque<std::future<Result<std::string>>> ahead_;
};

}  // namespace pscloud

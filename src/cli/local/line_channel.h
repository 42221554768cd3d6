#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "net/socket.h"
#include "pscloud/error.h"

namespace pscloud {

// Says that the user wants no more; asked about ten times a second.
using Cancelled = std::function<bool()>;

// Lines of text between two processes, or two threads, over a socket pair. One thread at each end.
class LineChannel {
 public:
  explicit LineChannel(Fd socket) : socket_(std::move(socket)) {}

  // Two ends that are not inherited by child processes.
  static Result<std::pair<Fd, Fd>> make_pair();

  // `line` has no end of line in it. kUnavailable if the other end is gone.
  Result<> write_line(std::string_view line);

  // The next line. kUnavailable if the other end is gone, kTimeout if it says nothing for so long, kFailed if
  // cancelled.
  Result<std::string> read_line(std::chrono::milliseconds timeout, const Cancelled& cancelled = {});

 private:
  Fd socket_;
  std::string read_;  // not yet given out
};

}  // namespace pscloud

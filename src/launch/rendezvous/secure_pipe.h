#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "base/fd.h"
#include "net/address.h"
#include "net/stream.h"
#include "pscloud/error.h"

namespace pscloud {

// Mutual TLS for those who speak over plain descriptors (line_stream.h): what is written to the near end reaches the
// peer, and the other way round. A thread of its own moves the bytes, a few at a time: who writes faster than the peer
// reads waits.
class SecurePipe {
 public:
  // `socket` is connected and does not block; `stream` is made for it.
  static Result<std::unique_ptr<SecurePipe>> over(Fd socket, std::unique_ptr<Stream> stream);

  // Waits for what was written to the near end before that was closed, some seconds at most.
  ~SecurePipe();
  SecurePipe(const SecurePipe&) = delete;
  SecurePipe& operator=(const SecurePipe&) = delete;

  // The end to read from and write to. Taken once; closing it ends the connection.
  Fd take_near_end() { return std::move(near_); }

 private:
  class Mover;

  SecurePipe(Fd near, std::unique_ptr<Mover> mover);

  Fd near_;
  std::unique_ptr<Mover> mover_;
  std::jthread thread_;
};

// A connection to `address`, tried again and again until `deadline`.
Result<Fd> connect_until(const Address& address, std::chrono::steady_clock::time_point deadline);

}  // namespace pscloud

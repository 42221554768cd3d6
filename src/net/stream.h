#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>

#include "net/transport.h"

namespace pscloud {

// How far an operation of a Stream came.
struct Progress {
  enum Status {
    kDone,       // `bytes` were moved, at least one
    kWantRead,   // nothing: try again when the socket is readable
    kWantWrite,  // nothing: try again when it is writable
    kEnd,        // the peer sends nothing more
    kFailed,     // Stream::error() says why
  };
  Status status;
  size_t bytes = 0;
  bool drained = false;  // the socket had no more than that
};

// Bytes over a connected socket that does not block; it belongs to somebody else. Used from the loop thread only.
class Stream {
 public:
  virtual ~Stream() = default;

  // Proves to each side who the other is, as far as the stream can; kDone when bytes may move.
  virtual Progress handshake() = 0;

  // Fills `room` from its beginning.
  virtual Progress read(std::span<const iovec> room) = 0;

  // Sends from the beginning of `data`. After kWantRead or kWantWrite the next call must begin with the same bytes.
  virtual Progress write(std::span<const iovec> data) = 0;

  // Tells the peer that nothing more comes.
  virtual void end_writing() = 0;

  // Why the last operation failed; without the peer's address.
  virtual const Error& error() const = 0;

  // Role and name the peer has proven in the handshake; the address is left alone.
  virtual void identify(Peer& peer) const = 0;
};

std::unique_ptr<Stream> make_plain_stream(int fd);

}  // namespace pscloud

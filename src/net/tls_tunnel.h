#pragma once

#include <openssl/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/mutex.h"
#include "net/address.h"
#include "pscloud/error.h"

namespace pscloud {

// A way to a server that speaks TLS, for programs that do not know its authority: what comes in the clear from this
// machine goes there encrypted. No proxy is asked. Thread-safe.
class TlsTunnel {
 public:
  // Connects once, to see that it is there and who it says: `ca_pem` has the only authorities that are believed, none
  // are the system's. kUnavailable or kTimeout if it is not reached, kInvalid if it is not the one it should be.
  static Result<std::unique_ptr<TlsTunnel>> open(const Address& server, const std::string& ca_pem);
  // Ends all connections.
  ~TlsTunnel();
  TlsTunnel(const TlsTunnel&) = delete;
  TlsTunnel& operator=(const TlsTunnel&) = delete;

  // Brings a connection there by a thread of its own, until either end closes it. If there are too many already, or
  // the server is not reached, it is closed.
  void carry(Fd connection) EXCLUDES(mutex_);

 private:
  class Line;

  TlsTunnel(const Address& server, SSL_CTX* context, Fd stop);

  const Address server_;
  SSL_CTX* const context_;
  const Fd stop_;  // an event
  Mutex mutex_;
  std::vector<std::unique_ptr<Line>> lines_ GUARDED_BY(mutex_);
};

}  // namespace pscloud

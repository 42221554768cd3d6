#pragma once

#include <openssl/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "net/stream.h"
#include "pscloud/error.h"
#include "pscloud/types.h"

namespace pscloud {

// What the TLS streams of one node share: its certificate, and the only CA it believes. Mutual TLS 1.3. A certificate
// names its node by one alternative name, pscloud://cluster/role/name. The host of a peer is not looked at, since nodes
// move: cluster and role are what is proven.
class TlsContext {
 public:
  // Reads ca.pem, node.pem and node.key from `dir`. A stream changes its key after `rekey_bytes`.
  static Result<std::unique_ptr<TlsContext>> load(const std::string& dir, uint64_t rekey_bytes);
  ~TlsContext();

  // For a socket that was accepted, or that connected to a peer of role `expected`. The context outlives the stream.
  // Its thread must not take SIGPIPE: OpenSSL writes to the socket itself, so that the kernel can do the encryption.
  std::unique_ptr<Stream> accept(int fd) const;
  std::unique_ptr<Stream> connect(int fd, Role expected) const;

 private:
  TlsContext(SSL_CTX* context, std::string cluster, uint64_t rekey_bytes);

  SSL_CTX* const context_;
  const std::string cluster_;  // ours, by our own certificate
  const uint64_t rekey_bytes_;
};

}  // namespace pscloud

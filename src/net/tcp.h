#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "net/transport.h"

namespace pscloud {

struct TcpOptions {
  std::string tls_dir = {};  // ca.pem, node.pem, node.key
  bool insecure = false;     // plaintext instead of TLS: only to and from loopback and private addresses

  Duration connect_timeout = std::chrono::seconds(5);       // name look-up and all addresses together
  Duration handshake_timeout = std::chrono::seconds(5);     // TLS
  Duration first_frame_timeout = std::chrono::seconds(10);  // of a lane that was accepted
  Duration linger = std::chrono::seconds(1);                // for what is queued when a lane is closed
  size_t handshakes_max = 1024;                             // accepted lanes that have not shown yet who they are
  size_t lanes_max = 16384;
  uint64_t tls_rekey_bytes = uint64_t{64} << 30;  // sent under one key; AES-GCM is safe for six times as much
};

// Lanes between machines, addresses "host:port". Mutual TLS 1.3: both sides prove by a certificate of the cluster's
// own CA which role they have; without `tls_dir`, plaintext with checksums if `insecure` asks for it.
// A worker that the server refuses may see on_open() before on_close(): in TLS 1.3 the client is done first.
// kInvalid, kNotFound: what to change.
Result<std::unique_ptr<LoopTransport>> make_tcp_transport(const TcpOptions& options, Clock& clock);

}  // namespace pscloud

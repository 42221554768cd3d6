#pragma once

#include <cstdint>
#include <utility>

#include "base/fd.h"
#include "base/random.h"
#include "pscloud/error.h"

namespace pscloud {

// Ports to lease from, both included.
struct PortRange {
  uint16_t low = 20000;
  uint16_t high = 32767;
};

// The default without those that the kernel gives to outgoing connections (ip_local_port_range): one of them could be
// taken between the end of the hold and the program's bind.
PortRange leased_ports();

// A TCP port that is a task's alone. Two things hold it: a bound socket, on all interfaces, until the program is about
// to bind it by itself; and for as long as this lives a socket of the network namespace that is named after the port,
// so that no other lease gets it while the program has not bound it yet, or not any more. Both die with their holder.
class PortLease {
 public:
  // kUnavailable if all are taken.
  static Result<PortLease> take(Random& random, PortRange range = leased_ports());

  uint16_t port() const { return port_; }

  // The program may bind it now. A process that was forked before still holds it until it calls exec.
  void let_bind() { bound_ = Fd(); }

 private:
  PortLease(uint16_t port, Fd name, Fd bound) : port_(port), name_(std::move(name)), bound_(std::move(bound)) {}

  uint16_t port_;
  Fd name_;
  Fd bound_;
};

}  // namespace pscloud

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cli/local/child_process.h"
#include "net/socket.h"
#include "pscloud/error.h"

namespace pscloud {

enum class RawSocketKind { kTcp, kUnix };
// Two ways to send and receive at the same time: one thread that polls, or one for each direction.
enum class Duplex : uint32_t { kPoll, kThreads };

// A process at the other end of a plain socket: what any program that moves bytes between processes this way must pay
// at least. Nothing is done with the bytes.
class RawSocketPeer {
 public:
  // A child process, by TCP over loopback or by a unix socket.
  static Result<RawSocketPeer> start(RawSocketKind kind);
  // One of another machine, which runs run_raw_socket_peer() on its end of this connection (raw_socket_dial.h).
  explicit RawSocketPeer(Fd socket);

  // Sends `out` and receives as many bytes into `in` at the same time, in pieces of 1 MiB. Milliseconds.
  Result<double> exchange_ms(std::span<const std::byte> out, std::span<std::byte> in, Duplex duplex);

  // `count` times `bytes` there and back, one after the other, by calls that block. Appends microseconds of each.
  Result<> round_trips(size_t bytes, int count, std::vector<double>& us);

 private:
  RawSocketPeer(Fd socket, ChildProcess child) : socket_(std::move(socket)), child_(std::move(child)) {}

  Fd socket_;
  std::optional<ChildProcess> child_;
};

// The other end: answers over its stdin until that ends. Gives the exit code. Refuses to move more than `bytes_max` at
// once: orders may come from another machine.
int run_raw_socket_peer(uint64_t bytes_max);

// Threads that keep every core awake at the lowest priority while this lives: waking an idle core can cost more than
// a message does.
class WarmCores {
 public:
  WarmCores();
  ~WarmCores();
  WarmCores(const WarmCores&) = delete;
  WarmCores& operator=(const WarmCores&) = delete;

 private:
  struct Threads;
  std::unique_ptr<Threads> threads_;
};

}  // namespace pscloud

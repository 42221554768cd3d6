#pragma once

#include <poll.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "launch/agent/line_buffer.h"
#include "pscloud/error.h"

namespace pscloud {

// Two ends that are connected, not inherited by child processes.
Result<std::pair<Fd, Fd>> make_socket_pair();

// Lines both ways over two descriptors (or one for both), without ever blocking: what cannot be sent yet is kept. One
// thread.
class LineStream {
 public:
  // What comes is read in lines of at most `line_max`; a longer one breaks the stream.
  LineStream(Fd in, Fd out, size_t line_max);

  void send_line(std::string_view line);
  void send_bytes(std::string_view bytes);
  // Not yet sent.
  size_t unsent() const { return out_bytes_.size() - sent_; }

  // Sends and reads what goes without waiting, and gives the next line there is. After the end of the stream the lines
  // that came before it are still given.
  std::optional<std::string> next_line();

  // Set once nothing more will come: why.
  const std::optional<std::string>& broken() const { return broken_; }

  void add_to(std::vector<pollfd>& polled) const;
  // Sends all, until `deadline_ms` from now; false if it could not.
  bool flush(int timeout_ms);
  // No more will be sent: the other end reads to the end.
  void close_output();

 private:
  int out() const { return out_ ? out_.get() : in_.get(); }
  void send_some();
  void read_some();
  void fail(std::string why);

  Fd in_;
  Fd out_;  // none: in_ is for both
  bool output_closed_ = false;
  const size_t line_max_;
  LineBuffer lines_;
  std::string out_bytes_;
  size_t sent_ = 0;
  std::optional<std::string> broken_;
};

}  // namespace pscloud

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/http_client.h"

namespace pscloud {

// Answers that do not end soon, such as logs that are followed: any number at once, for one thread, which waits for all
// of them together. Nothing is sent again: who wants that opens another.
class HttpStreams {
 public:
  struct Event {
    uint64_t stream = 0;
    std::string bytes = {};
    bool ended = false;      // no more will come; the stream is closed
    int status = 0;          // of HTTP, once it is known
    std::string error = {};  // why it ended, unless the server has ended it
  };

  explicit HttpStreams(HttpOptions options);
  ~HttpStreams();
  HttpStreams(const HttpStreams&) = delete;
  HttpStreams& operator=(const HttpStreams&) = delete;

  // A request without a body. `stall` and `response_bytes_max` do not count.
  uint64_t open(HttpRequest request);
  void close(uint64_t stream);

  // What has come; waits for it until `deadline`, or until `wake_fd` is readable (-1: none). Reads each connection
  // once, so that no more than a few hundred kilobytes of it are held at a time.
  std::vector<Event> wait(std::chrono::steady_clock::time_point deadline, int wake_fd);

 private:
  struct Stream;
  struct Multi;

  void collect(std::vector<Event>& events);

  const HttpOptions options_;
  std::unique_ptr<Multi> multi_;
  std::map<uint64_t, std::unique_ptr<Stream>> streams_;
  uint64_t next_ = 1;
};

}  // namespace pscloud

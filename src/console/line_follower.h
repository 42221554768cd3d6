#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace pscloud {

// Reads what is appended to a file, line by line. The file may not be there yet; and it may be replaced by another that
// has fewer of its lines, its last among them, and goes on from there (launch/sample_file.h). One thread.
class LineFollower {
 public:
  enum class From : uint8_t { kStart, kEnd };  // kEnd: where the line that is being written begins
  LineFollower(std::string path, From from);

  // Whole lines that have come since the last time, without their ends, valid until the next call; a line of more than
  // 64 KB comes in pieces. With `last`, a line without an end too. True if there may be more.
  bool read(std::vector<std::string_view>& lines, bool last);

  // Bytes behind the last line that was given.
  uint64_t offset() const { return offset_; }

 private:
  bool open();
  bool is_replaced() const;
  void go_on_in_new_file();
  std::string last_line();  // that was given, or was passed over, with its end

  const std::string path_;
  Fd file_;
  uint64_t offset_ = 0;
  std::string buffer_;
};

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "pscloud/error.h"

namespace pscloud {

// A number under a name, as TensorBoard draws it.
struct TensorBoardScalar {
  std::string_view tag;
  double value;
};

// An event file: what `tensorboard --logdir DIR` reads. Only scalars. One writer a folder: TensorBoard shows the
// newest of several files and may hide the others. Not thread-safe.
class TensorBoardWriter {
 public:
  // Makes `folder` if need be, and a file of its own there. `wall_time_s` is seconds since 1970.
  static Result<TensorBoardWriter> create(const std::string& folder, double wall_time_s);

  // The numbers of one step. They are on their way to the disk when this returns, so that TensorBoard can follow.
  Result<> write(double wall_time_s, int64_t step, std::span<const TensorBoardScalar> scalars);

  const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  TensorBoardWriter(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}
  Result<> write_record(std::string_view event);

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace pscloud

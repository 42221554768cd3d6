#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_value.h"
#include "pscloud/error.h"

namespace pscloud {

// A file of this machine that tasks elsewhere find in their folder.
struct ShippedFile {
  std::string name;  // there, relative: "train.py", "lib/a.py"
  std::string hash;  // of its bytes: a host that has them is not sent them again
  uint64_t bytes = 0;
  bool executable = false;
  std::string path;  // here
};

// All files that `paths` name, with everything in those that are folders. kNotFound names what is not there, kInvalid
// two of one name.
Result<std::vector<ShippedFile>> list_shipped(const std::vector<std::string>& paths);
std::string shipped_json(const std::vector<ShippedFile>& files);  // an array
Result<std::vector<ShippedFile>> parse_shipped(const JsonValue& array);

// Reads a file in pieces of a few megabytes; `take` gets each, and whether it is the last.
Result<> read_pieces(const std::string& path, const std::function<Result<>(std::string_view piece, bool last)>& take);

// On the host: files by hash, below one folder, whole or not there.
class FileCache {
 public:
  explicit FileCache(std::string folder) : folder_(std::move(folder)) {}

  // Asking counts as a use.
  bool has(const ShippedFile& file) const;
  // Pieces of one file follow each other. kCorrupt if the whole is not what its hash says.
  Result<> put(const std::string& hash, std::string_view piece, bool last);
  // In `folder`, which is made; as copies, so that what a task writes to its own is nobody else's, and one that is
  // removed from here stays there. Only who was executable is.
  Result<> place(const std::vector<ShippedFile>& files, const std::string& folder) const;
  // Removes what nobody has asked for since `before`, also what has come only in part.
  void prune(std::chrono::file_clock::time_point before) const;

 private:
  std::string path_of(const std::string& hash) const { return folder_ + "/" + hash; }

  const std::string folder_;
};

}  // namespace pscloud

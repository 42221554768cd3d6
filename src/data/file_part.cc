#include "data/file_part.h"

#include <algorithm>

#include "base/check.h"
#include "io/decompress.h"

namespace pscloud {

Result<std::vector<FilePart>> cut_files(FileStore& store, std::span<const FileInfo> files, uint64_t bytes) {
  CHECK(bytes > 0, "parts of no bytes");
  std::vector<FilePart> parts;
  for (const FileInfo& file : files) {
    const uint64_t count = std::max<uint64_t>(1, (file.size + bytes - 1) / bytes);
    if (count == 1 || TRY(compression_of(store, file.uri)) != Compression::kNone) {
      parts.push_back({.uri = file.uri});
      continue;
    }
    const uint64_t each = (file.size + count - 1) / count;
    for (uint64_t begin = 0; begin < file.size; begin += each) {
      parts.push_back({.uri = file.uri, .begin = begin, .end = begin + each});
    }
    parts.back().end = FilePart{}.end;  // what has been appended since belongs to the last
  }
  return parts;
}

}  // namespace pscloud

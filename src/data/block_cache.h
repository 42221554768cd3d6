#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "data/file_part.h"
#include "data/row_block.h"

namespace pscloud {

// What reading a part of a file came to.
struct ReadPart {
  RowBlock rows;
  uint64_t bad_lines = 0;
};

// Parts of files that were read before, as files of their own, so that they need not be parsed again. Such a file tells
// what it was made of: when the source has another size, time or content at its ends, or is read in another way, it is
// made anew. docs/block-cache.md has its bytes. Thread-safe if the store is, which is borrowed.
class BlockCache {
 public:
  // Names begin with `prefix`. `reading` says how text becomes rows: the format, and what else they depend on.
  BlockCache(FileStore& store, std::string prefix, std::string reading)
      : store_(store), prefix_(std::move(prefix)), reading_(std::move(reading)) {}

  // Nothing if it is not there, or no longer right; what is damaged is named in the log.
  Result<std::optional<ReadPart>> load(const FilePart& part);
  // What the part is made of now: to be asked before it is read.
  Result<std::string> identity_of(const FilePart& part);
  Result<> save(const FilePart& part, const std::string& identity, const ReadPart& read);

  std::string file_of(const FilePart& part) const;

 private:
  FileStore& store_;
  const std::string prefix_;
  const std::string reading_;
};

// The bytes of such a file. kCorrupt if they are none; nothing if they are of another identity.
std::string encode_block(const ReadPart& read, const std::string& identity);
Result<std::optional<ReadPart>> decode_block(std::string_view bytes, const std::string& identity);

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/file_store.h"

namespace pscloud {

// Some lines or records of a file: those that begin at `begin` or behind it, and before `end`, counted in bytes of what
// is in it, decompressed. Together the parts of a file have each line once, wherever the cuts are.
struct FilePart {
  std::string uri;
  uint64_t begin = 0;
  uint64_t end = std::numeric_limits<uint64_t>::max();  // the file's
  // Of the file, so that workers notice if they do not all read the same. Empty for a file of this machine: a copy of
  // it on another has a version of its own, and one that grows while it is read may.
  std::string version = {};

  bool operator==(const FilePart&) const = default;
};

// A part as text: "begin end version uri"; "-" if it has no version.
std::string to_text(const FilePart& part);
Result<FilePart> part_of_text(std::string_view text);

// Whether it can be read from a place in the middle: a compressed file cannot, nor can one of plain records, nor one of
// which the store gives no parts.
Result<bool> can_be_cut(FileStore& store, const FileInfo& file);

// Parts of about `bytes` each, so that few files still feed many workers; if it cannot be cut, one.
std::vector<FilePart> cut_file(const FileInfo& file, uint64_t bytes, bool can_be_cut);

}  // namespace pscloud

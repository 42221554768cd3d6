#include "data/file_part.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "io/decompress.h"
#include "io/recordio.h"

namespace pscloud {
std::string to_text(const FilePart& part) {
  CHECK(part.version.find(' ') == std::string::npos, "version '{}' of {}", part.version, part.uri);
  return fmt::format("{} {} {} {}", part.begin, part.end, part.version.empty() ? "-" : part.version, part.uri);
}

Result<FilePart> part_of_text(std::string_view text) {
  FilePart part;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (uint64_t* number : {&part.begin, &part.end}) {
    const auto [rest, error] = std::from_chars(at, end, *number);
    if (error != std::errc() || rest == end || *rest != ' ') return corrupt("'{}' is no part of a file", text);
    at = rest + 1;
  }
  const char* const space = std::find(at, end, ' ');
  if (space == at || space == end) return corrupt("'{}' is no part of a file", text);
  part.version.assign(at, space);
  if (part.version == "-") part.version.clear();
  part.uri.assign(space + 1, end);
  return part;
}

Result<bool> can_be_cut(FileStore& store, const FileInfo& file) {
  if (!file.gives_parts) return false;
  const std::string first = TRY(first_bytes(store, file.uri));
  return compression_of(first) == Compression::kNone && record_kind(first) != RecordKind::kPlain;
}

std::vector<FilePart> cut_file(const FileInfo& file, uint64_t bytes, bool can_be_cut) {
  CHECK(bytes > 0, "parts of no bytes");
  const std::string version = file.version_is_global ? file.version : "";
  const uint64_t count = std::max<uint64_t>(1, (file.size + bytes - 1) / bytes);
  if (count == 1 || !can_be_cut) return {{.uri = file.uri, .version = version}};
  std::vector<FilePart> parts;
  const uint64_t each = (file.size + count - 1) / count;
  for (uint64_t begin = 0; begin < file.size; begin += each) {
    parts.push_back({.uri = file.uri, .begin = begin, .end = begin + each, .version = version});
  }
  parts.back().end = FilePart{}.end;  // what has been appended since belongs to the last
  return parts;
}

}  // namespace pscloud

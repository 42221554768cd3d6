#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "data/parser.h"
#include "data/text_reader.h"
#include "io/file_store.h"

namespace pscloud {

// Counts bad lines, and tells a person where the first of them are. `Reader` is one of parts of files.
class BadLineComplaints {
 public:
  // About those of a part that has been read. If `strict`, the first of them is an error.
  template <class Reader>
  Result<> complain(FileStore& store, const std::string& uri, const Reader& reader, bool strict) {
    return complain(store, uri, reader.bad_lines(), reader.reads_records(), strict);
  }
  uint64_t count() const { return count_; }  // of all parts

 private:
  Result<> complain(FileStore& store, const std::string& uri, const BadLines& bad, bool are_records, bool strict);
  Result<std::string> place_of_line(FileStore& store, const std::string& uri, uint64_t offset);

  uint64_t count_ = 0;
  size_t told_ = 0;
  std::string counted_uri_;  // the file whose lines were counted last, and how far
  LinePlace counted_;
};

}  // namespace pscloud

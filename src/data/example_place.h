#pragma once

#include <cstdint>
#include <string>

#include "data/parser.h"
#include "io/file_store.h"

namespace pscloud {

// A place between the examples of a file. Counted are lines that are not empty, or records, before anybody knows
// whether they make sense.
struct ExamplePlace {
  uint64_t number = 0;  // of examples before it
  uint64_t offset = 0;  // in bytes of what is in the file, decompressed: where the next one begins, or the file's end
};

// Goes past the first `number` of them, or to the end of the file: so the last place tells how many there are.
Result<ExamplePlace> find_example(FileStore& store, const std::string& uri, ExampleFormat format, uint64_t number);

}  // namespace pscloud

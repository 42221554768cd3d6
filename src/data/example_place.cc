#include "data/example_place.h"

#include <cstring>

#include "data/scan.h"
#include "data/text_reader.h"
#include "io/recordio.h"

namespace pscloud {
namespace {

Result<ExamplePlace> find_line(FileStore& store, const std::string& uri, uint64_t number) {
  TextReader reader = TRY(TextReader::open(store, {.uri = uri}));
  ExamplePlace place;
  while (place.number < number) {
    const std::string_view lines = TRY(reader.next());
    if (lines.empty()) return place;
    const char* at = lines.data();
    const char* const end = at + lines.size();
    while (at < end && place.number < number) {
      const auto* found = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)));
      const char* const line_end = found == nullptr ? end : found;
      const char* const first = skip_blanks(at, line_end);
      const bool is_empty = first == line_end || (*first == '\r' && first + 1 == line_end);
      if (!is_empty) ++place.number;
      at = found == nullptr ? end : found + 1;
    }
    place.offset = reader.offset() + static_cast<uint64_t>(at - lines.data());
  }
  return place;
}

Result<ExamplePlace> find_record(FileStore& store, const std::string& uri, uint64_t number) {
  RecordReader reader = TRY(RecordReader::open(store, uri, {}));
  ExamplePlace place;
  while (place.number < number && TRY(reader.next())) {
    ++place.number;
    place.offset = reader.offset();
  }
  return place;
}

}  // namespace

Result<ExamplePlace> find_example(FileStore& store, const std::string& uri, ExampleFormat format, uint64_t number) {
  return format == ExampleFormat::kProto ? find_record(store, uri, number) : find_line(store, uri, number);
}

}  // namespace pscloud

// Files of records, and the examples in them. The first byte of the input says whether groups are read and how the file
// is cut; the rest is the file. Whatever it holds: reading ends, parts stay within it, and rows fit together.
#include <string>
#include <string_view>

#include "base/check.h"
#include "data/parser.h"
#include "io/memory_store.h"
#include "io/recordio.h"

namespace pscloud {
namespace {

void run(std::string_view input) {
  if (input.empty()) return;
  const auto first = static_cast<uint8_t>(input[0]);
  const std::string text(input.substr(1));
  MemoryStore store({{"f", text}}, 1 + first % 16);
  const auto parser = make_parser(ExampleFormat::kProto, (first & 128) != 0);
  const uint64_t cut = record_kind(text) == RecordKind::kAligned ? text.size() * (first & 7) / 8 : 0;
  RowBlock block;
  BadLines bad;
  for (const ByteRange& range : {ByteRange{0, cut}, ByteRange{cut}}) {
    auto reader = RecordReader::open(store, "f", range);
    if (!reader) continue;
    uint64_t behind = 0;
    while (true) {
      const auto read = reader->next();
      if (!read || !*read) break;
      const Record& record = **read;
      CHECK(record.offset >= behind && record.offset >= range.begin && record.offset < range.end);
      behind = record.offset + 1;
      CHECK(record.bytes.size() <= text.size());
      if (record.damage.empty()) parser->parse_record(record.bytes, block, bad);
    }
    CHECK(reader->offset() <= text.size() + 3);
  }
  CHECK(block.ends.size() == block.rows());
  CHECK((block.rows() == 0 ? 0 : block.ends.back()) == block.keys.size());
  CHECK(block.values.empty() || block.values.size() == block.keys.size());
  CHECK(block.groups.empty() || block.groups.size() == block.keys.size());
}

}  // namespace
}  // namespace pscloud

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pscloud::run({reinterpret_cast<const char*>(data), size});
  return 0;
}

// The parsers of text formats. The first byte of the input chooses the format and whether groups are read; the rest is
// the text. It ends right where memory ends but for the padding a parser may read.
#include <algorithm>
#include <string>
#include <string_view>

#include "base/check.h"
#include "data/parser.h"

namespace pscloud {
namespace {

constexpr int kFormats = 8;

void run(std::string_view input) {
  if (input.empty()) return;
  const auto first = static_cast<uint8_t>(input[0]);
  const auto parser = make_parser(static_cast<ExampleFormat>(first % kFormats), (first & 128) != 0);
  std::string text(input.substr(1));
  const size_t size = text.size();
  text.append(kScanPadding, '\0');
  text.shrink_to_fit();
  RowBlock block;
  BadLines bad;
  parser->parse(std::string_view(text).substr(0, size), block, bad);

  CHECK(block.ends.size() == block.rows());
  CHECK((block.rows() == 0 ? 0 : block.ends.back()) == block.keys.size());
  for (size_t row = 0; row < block.rows(); ++row) CHECK(block.begin_of(row) <= block.ends[row]);
  CHECK(block.values.empty() || block.values.size() == block.keys.size());
  CHECK(block.groups.empty() || block.groups.size() == block.keys.size());
  CHECK(bad.first.size() == std::min<uint64_t>(bad.count, BadLines::kKept));
  for (const BadLines::One& one : bad.first) CHECK(one.offset <= size && !one.reason.empty());
}

}  // namespace
}  // namespace pscloud

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pscloud::run({reinterpret_cast<const char*>(data), size});
  return 0;
}

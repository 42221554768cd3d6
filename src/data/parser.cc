#include "data/parser.h"

#include <cstring>
#include <limits>

#include "base/check.h"
#include "data/parser_makers.h"

namespace pscloud {

void Parser::parse(std::string_view text, RowBlock& block, BadLines& bad) {
  const char* const text_end = text.data() + text.size();
  for (const char* at = text.data(); at < text_end;) {
    const auto* found = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(text_end - at)));
    take_line(text, at, found == nullptr ? text_end : found, block, bad);
    at = found == nullptr ? text_end : found + 1;
  }
}

void Parser::take_line(std::string_view text, const char* at, const char* end, RowBlock& block, BadLines& bad) {
  if (end > at && end[-1] == '\r') --end;
  const char* const first = skip_blanks(at, end);
  if (first == end) return;
  Complaint complaint = parse_line(first, end, block);
  if (complaint.at == nullptr) return;
  end_bad(block);
  bad.add(static_cast<uint64_t>(complaint.at - text.data()), std::move(complaint.reason));
}

void Parser::parse_record(std::string_view record, RowBlock& block, BadLines& bad) {
  Complaint complaint = parse_line(record.data(), record.data() + record.size(), block);
  if (complaint.at == nullptr) return;
  end_bad(block);
  bad.add(static_cast<uint64_t>(complaint.at - record.data()), std::move(complaint.reason));
}

void Parser::end_bad(RowBlock& block) const {
  block.drop_unended();
  if (labels_ == Labels::kMayLack) block.end_row(std::numeric_limits<float>::quiet_NaN());
}

namespace {

std::unique_ptr<Parser> parser_of(ExampleFormat format, bool ignore_groups) {
  switch (format) {
    case ExampleFormat::kDense:
    case ExampleFormat::kSparse:
    case ExampleFormat::kSparseBinary: return make_grouped_parser(format, ignore_groups);
    case ExampleFormat::kAdfea: return make_adfea_parser(ignore_groups);
    case ExampleFormat::kLibsvm: return make_libsvm_parser();
    case ExampleFormat::kTerafea: return make_terafea_parser(ignore_groups);
    case ExampleFormat::kVw: return make_vw_parser();
    case ExampleFormat::kCriteo: return make_criteo_parser(ignore_groups);
    case ExampleFormat::kProto: return make_proto_parser(ignore_groups);
  }
  CHECK(false, "format {}", static_cast<int>(format));
}

}  // namespace

std::unique_ptr<Parser> make_parser(ExampleFormat format, bool ignore_groups, Labels labels) {
  auto parser = parser_of(format, ignore_groups);
  parser->set_labels(labels);
  return parser;
}

int parser_version(ExampleFormat format) {
  // 2: an importance that is not 1 is refused, and so is a line without a label.
  return format == ExampleFormat::kVw ? 2 : 1;
}

}  // namespace pscloud

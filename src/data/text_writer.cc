#include "data/text_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/number_text.h"
#include "io/recordio.h"

namespace pscloud {
namespace {

// One row of a slice.
struct Row {
  bool positive;
  uint64_t number;
  std::span<const Key> keys;
  std::span<const float> values;  // empty: all are 1
  std::span<const uint16_t> groups;

  float value(size_t i) const { return values.empty() ? 1 : values[i]; }
  // Those without groups are in the first that features can have: 0 is the label's, where the original has one.
  uint16_t group(size_t i) const { return groups.empty() ? 1 : groups[i]; }
  bool is_binary() const {
    return std::ranges::all_of(values, [](float value) { return value == 1; });
  }
};

void write_libsvm(const Row& row, std::string& text) {
  text += row.positive ? '1' : '0';
  for (size_t i = 0; i < row.keys.size(); ++i) {
    text += ' ';
    append_number(text, row.keys[i]);
    text += ':';
    append_number(text, row.value(i));
  }
}

void write_vw(const Row& row, std::string& text) {
  text += row.positive ? "1 |f" : "-1 |f";
  for (size_t i = 0; i < row.keys.size(); ++i) {
    text += ' ';
    append_number(text, row.keys[i]);
    if (row.value(i) == 1) continue;
    text += ':';
    append_number(text, row.value(i));
  }
}

void write_grouped(const Row& row, bool with_values, std::string& text) {
  text += row.positive ? "1;" : "-1;";
  for (size_t i = 0; i < row.keys.size(); ++i) {
    if (i == 0 || row.group(i) != row.group(i - 1)) {
      text += i == 0 ? " " : "; ";
      append_number(text, uint64_t{row.group(i)});
    }
    text += ' ';
    append_number(text, row.keys[i]);
    if (!with_values) continue;
    text += ':';
    append_number(text, row.value(i));
  }
  text += ';';
}

void write_adfea(const Row& row, std::string& text) {
  append_number(text, row.number);
  text += row.positive ? " 1 1" : " 1 0";
  for (size_t i = 0; i < row.keys.size(); ++i) {
    text += ' ';
    append_number(text, row.keys[i]);
    text += ':';
    append_number(text, uint64_t{row.group(i)});
  }
}

void write_terafea(const Row& row, std::string& text) {
  text += row.positive ? "1 " : "-1 ";
  append_number(text, row.number);
  text += " |";
  for (size_t i = 0; i < row.keys.size(); ++i) {
    constexpr Key kRest = (Key{1} << 54) - 1;
    text += ' ';
    append_number(text, Key{row.group(i)} << 54 | (row.keys[i] & kRest));
  }
}

// Groups are columns, from 1 on: 13 counts, then 26 words.
void write_criteo(const Row& row, std::string& text) {
  constexpr uint16_t kCriteoCounts = 13;
  constexpr uint16_t kCriteoColumns = 39;
  text += row.positive ? '1' : '0';
  size_t at = 0;
  for (uint16_t column = 0; column < kCriteoColumns; ++column) {
    text += '\t';
    if (at == row.keys.size() || row.group(at) != column + 1) continue;
    if (column < kCriteoCounts) {
      append_number(text, static_cast<uint64_t>(std::max(0L, std::lround(std::expm1(row.value(at))))));
    } else {
      text += fmt::format("{:08x}", row.keys[at]);
    }
    ++at;
  }
}

void append_varint(uint64_t value, std::string& text) {
  for (; value >= 0x80; value >>= 7) text += static_cast<char>(value | 0x80);
  text += static_cast<char>(value);
}

void append_float(float value, std::string& text) { text.append(reinterpret_cast<const char*>(&value), sizeof value); }

// A field of a message: its number, that its length comes first, its bytes.
void append_field(uint64_t number, std::string_view bytes, std::string& text) {
  append_varint(number << 3 | 2, text);
  append_varint(bytes.size(), text);
  text += bytes;
}

// A record of dmlc's Example (parser_proto.cc). Slot 0 is the label.
Result<> write_proto(const Row& row, std::string& text) {
  std::string example;
  std::string slot;
  std::string packed;
  append_float(row.positive ? 1 : -1, packed);
  append_field(3, packed, slot);
  append_field(1, slot, example);
  const bool binary = row.is_binary();
  for (size_t begin = 0, end = 0; begin < row.keys.size(); begin = end) {
    while (end < row.keys.size() && row.group(end) == row.group(begin)) ++end;
    const uint64_t id = row.group(begin);
    if (id == 0) return invalid("example {} has features of group 0: in PROTO that is the label's", row.number);
    slot.clear();
    append_varint(1 << 3, slot);
    append_varint(id, slot);
    packed.clear();
    for (size_t i = begin; i < end; ++i) append_varint(row.keys[i], packed);
    append_field(2, packed, slot);
    packed.clear();
    for (size_t i = begin; i < end && !binary; ++i) append_float(row.value(i), packed);
    if (!binary) append_field(3, packed, slot);
    append_field(1, slot, example);
  }
  if (example.size() > RecordReader::kRecordBytesMax) {
    return invalid("example {} is too long: a record of {} bytes", row.number, example.size());
  }
  append_record(example, text);
  return {};
}

}  // namespace

Result<> append_text(ExampleFormat format, const RowSlice& rows, uint64_t first_number, std::string& text) {
  for (size_t i = 0; i < rows.rows(); ++i) {
    const size_t begin = (i == 0 ? rows.first : rows.ends[i - 1]) - rows.first;
    const size_t count = rows.ends[i] - rows.first - begin;
    const auto part = [&](auto all) { return all.empty() ? all : all.subspan(begin, count); };
    const Row row{.positive = rows.labels[i] > 0,
                  .number = first_number + i,
                  .keys = part(rows.keys),
                  .values = part(rows.values),
                  .groups = part(rows.groups)};
    const auto only_ones = [&](const char* name) -> Result<> {
      if (row.is_binary()) return {};
      return invalid("example {} has values that are not 1: {} has no place for them", row.number, name);
    };
    switch (format) {
      case ExampleFormat::kLibsvm: write_libsvm(row, text); break;
      case ExampleFormat::kVw: write_vw(row, text); break;
      case ExampleFormat::kSparse: write_grouped(row, true, text); break;
      case ExampleFormat::kSparseBinary:
        TRY(only_ones("SPARSE_BINARY"));
        write_grouped(row, false, text);
        break;
      case ExampleFormat::kAdfea:
        TRY(only_ones("ADFEA"));
        write_adfea(row, text);
        break;
      case ExampleFormat::kTerafea:
        TRY(only_ones("TERAFEA"));
        write_terafea(row, text);
        break;
      case ExampleFormat::kCriteo: write_criteo(row, text); break;
      case ExampleFormat::kProto: TRY(write_proto(row, text)); continue;  // no line, so no end of one
      case ExampleFormat::kDense: return invalid("DENSE cannot be written: it has no keys");
    }
    text += '\n';
  }
  return {};
}

}  // namespace pscloud

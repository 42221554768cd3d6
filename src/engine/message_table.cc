// TableSpec as it travels; the other messages are in message.cc.

#include "engine/message.h"
#include "engine/message_fields.h"

namespace pscloud {
namespace {

void put_filters(ByteWriter& writer, const std::vector<FilterSpec>& filters) {
  writer.put(static_cast<uint32_t>(filters.size()));
  for (const FilterSpec& filter : filters) {
    writer.put(filter.kind);
    writer.put(filter.num_bytes);
    writer.put(filter.mean);
    writer.put(filter.stddev);
    writer.put(static_cast<uint8_t>(filter.once));
  }
}

std::vector<FilterSpec> get_filters(ByteReader& reader, bool& known) {
  std::vector<FilterSpec> filters(reader.get_count(11), FilterSpec{FilterKind{}});
  for (FilterSpec& filter : filters) {
    filter.kind = reader.get<FilterKind>();
    filter.num_bytes = reader.get<uint8_t>();
    filter.mean = reader.get<float>();
    filter.stddev = reader.get<float>();
    filter.once = get_bool(reader, known);
  }
  return filters;
}

}  // namespace

// Nothing is cut here: a shortened name would be another table's.
SharedBuffer encode(const TableSpec& spec) {
  ByteWriter writer;
  writer.put_text(spec.name);
  writer.put(spec.kind);
  writer.put(spec.width);
  writer.put(spec.rows);
  writer.put(spec.hashes);
  writer.put_text(spec.updater.name);
  writer.put(static_cast<uint32_t>(spec.updater.numbers.size()));
  for (const auto& [name, number] : spec.updater.numbers) {
    writer.put_text(name);
    writer.put(number);
  }
  writer.put(spec.consistency.kind);
  writer.put(spec.consistency.staleness);
  writer.put(spec.initial.low);
  writer.put(spec.initial.high);
  writer.put(spec.initial.seed);
  put_filters(writer, spec.push_filters);
  put_filters(writer, spec.pull_filters);
  writer.put(spec.bytes_max);
  return writer.share();
}

template <>
Result<TableSpec> decode(Bytes bytes) {
  ByteReader reader(bytes);
  TableSpec spec;
  spec.name = reader.get_text(kNameBytesMax);
  spec.kind = reader.get<TableKind>();
  spec.width = reader.get<uint32_t>();
  spec.rows = reader.get<uint64_t>();
  spec.hashes = reader.get<uint32_t>();
  spec.updater.name = reader.get_text(kNameBytesMax);
  spec.updater.numbers.resize(reader.get_count(8));
  for (auto& [name, number] : spec.updater.numbers) {
    name = reader.get_text(kNameBytesMax);
    number = reader.get<float>();
  }
  spec.consistency.kind = reader.get<Consistency::Kind>();
  spec.consistency.staleness = reader.get<uint32_t>();
  spec.initial.low = reader.get<float>();
  spec.initial.high = reader.get<float>();
  spec.initial.seed = reader.get<uint64_t>();
  bool known = true;
  spec.push_filters = get_filters(reader, known);
  spec.pull_filters = get_filters(reader, known);
  spec.bytes_max = reader.get<uint64_t>();
  TRY(finish(reader, known, "a table spec"));
  // The sender has validated it before; what fails now is not what it wrote.
  if (auto valid = validate(spec); !valid) return corrupt("{}", valid.error().message);
  return spec;
}

}  // namespace pscloud

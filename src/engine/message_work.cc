// Messages about work, tallies and whole rows; the others are in message.cc.

#include "engine/message.h"
#include "engine/message_fields.h"

namespace pscloud {
namespace {

void put_addends(ByteWriter& writer, const std::vector<Addend>& addends) {
  writer.put(static_cast<uint32_t>(addends.size()));
  for (const Addend& addend : addends) {
    writer.put(addend.place);
    writer.put(addend.value);
  }
}

std::vector<Addend> get_addends(ByteReader& reader) {
  std::vector<Addend> addends(reader.get_count(12));
  for (Addend& addend : addends) {
    addend.place = reader.get<uint32_t>();
    addend.value = reader.get<double>();
  }
  return addends;
}

template <Scalar T>
void put_array(ByteWriter& writer, const std::vector<T>& values) {
  writer.put(static_cast<uint32_t>(values.size()));
  writer.put_raw(bytes_of(std::span<const T>(values)));
}

template <Scalar T>
std::vector<T> get_array(ByteReader& reader) {
  std::vector<T> values(reader.get_count(sizeof(T)));
  const Bytes raw = reader.get_raw(values.size() * sizeof(T));
  if (!raw.empty()) std::memcpy(values.data(), raw.data(), raw.size());
  return values;
}

}  // namespace

SharedBuffer encode(const OfferWorkMessage& message) {
  ByteWriter writer;
  writer.put_text(message.pool);
  writer.put(static_cast<uint32_t>(message.items.size()));
  for (const std::string& item : message.items) writer.put_text(item);
  writer.put(message.slow);
  writer.put(message.deal);
  return writer.share();
}

template <>
Result<OfferWorkMessage> decode(Bytes bytes) {
  ByteReader reader(bytes);
  bool known = true;
  OfferWorkMessage message;
  message.pool = reader.get_text(kNameBytesMax);
  message.items.resize(reader.get_count(sizeof(uint32_t)));
  for (std::string& item : message.items) item = reader.get_text(kTextBytesMax);
  message.slow = get_enum(reader, SlowWork::kRepeat, SlowWork::kAwait, known);
  message.deal = get_enum(reader, WorkDeal::kFirstCome, WorkDeal::kByRank, known);
  TRY(finish(reader, known, "an offer of work"));
  return message;
}

SharedBuffer encode(const TakenMessage& message) {
  ByteWriter writer;
  writer.put(message.state);
  writer.put(message.item.number);
  writer.put_text(message.item.text);
  writer.put(static_cast<uint8_t>(message.item.repeated));
  put_cut(writer, message.waiting_for);
  return writer.share();
}

template <>
Result<TakenMessage> decode(Bytes bytes) {
  ByteReader reader(bytes);
  bool known = true;
  TakenMessage message;
  message.state = get_enum(reader, TakenMessage::State::kGiven, TakenMessage::State::kPause, known);
  message.item.number = reader.get<uint64_t>();
  message.item.text = reader.get_text(kTextBytesMax);
  message.item.repeated = get_bool(reader, known);
  message.waiting_for = reader.get_text(kTextBytesMax);
  TRY(finish(reader, known, "an item of work"));
  return message;
}

SharedBuffer encode(const FinishWorkMessage& message) {
  ByteWriter writer;
  writer.put_text(message.pool);
  writer.put(message.number);
  put_addends(writer, message.addends);
  writer.put_text(message.forgets);
  return writer.share();
}

template <>
Result<FinishWorkMessage> decode(Bytes bytes) {
  ByteReader reader(bytes);
  FinishWorkMessage message;
  message.pool = reader.get_text(kNameBytesMax);
  message.number = reader.get<uint64_t>();
  message.addends = get_addends(reader);
  message.forgets = reader.get_text(kNameBytesMax);
  TRY(reader.finish("an end of work"));
  return message;
}

SharedBuffer encode(const PauseWorkMessage& message) {
  ByteWriter writer;
  writer.put_text(message.pool);
  writer.put(message.number);
  writer.put(static_cast<uint8_t>(message.begins));
  return writer.share();
}

template <>
Result<PauseWorkMessage> decode(Bytes bytes) {
  ByteReader reader(bytes);
  bool known = true;
  PauseWorkMessage message;
  message.pool = reader.get_text(kNameBytesMax);
  message.number = reader.get<uint64_t>();
  message.begins = get_bool(reader, known);
  TRY(finish(reader, known, "a pause of work"));
  return message;
}

SharedBuffer encode(const YesNoMessage& message) {
  ByteWriter writer;
  writer.put(static_cast<uint8_t>(message.yes));
  return writer.share();
}

template <>
Result<YesNoMessage> decode(Bytes bytes) {
  ByteReader reader(bytes);
  bool known = true;
  const YesNoMessage message{get_bool(reader, known)};
  TRY(finish(reader, known, "a yes or no"));
  return message;
}

SharedBuffer encode(const TallyMessage& message) {
  ByteWriter writer;
  writer.put_text(message.tally);
  put_addends(writer, message.addends);
  writer.put(message.first);
  writer.put(message.count);
  return writer.share();
}

template <>
Result<TallyMessage> decode(Bytes bytes) {
  ByteReader reader(bytes);
  TallyMessage message;
  message.tally = reader.get_text(kNameBytesMax);
  message.addends = get_addends(reader);
  message.first = reader.get<uint32_t>();
  message.count = reader.get<uint32_t>();
  TRY(reader.finish("a tally"));
  return message;
}

SharedBuffer encode(const TallyReplyMessage& message) {
  ByteWriter writer;
  put_array(writer, message.sums);
  return writer.share();
}

template <>
Result<TallyReplyMessage> decode(Bytes bytes) {
  ByteReader reader(bytes);
  TallyReplyMessage message{get_array<double>(reader)};
  TRY(reader.finish("the sums of a tally"));
  return message;
}

SharedBuffer encode(const ScanMessage& message) {
  ByteWriter writer;
  writer.put(message.first);
  writer.put(message.kind);
  return writer.share();
}

template <>
Result<ScanMessage> decode(Bytes bytes) {
  ByteReader reader(bytes);
  bool known = true;
  ScanMessage message;
  message.first = reader.get<uint64_t>();
  message.kind = get_enum(reader, ScanKind::kCount, ScanKind::kState, known);
  TRY(finish(reader, known, "a scan"));
  return message;
}

SharedBuffer encode(const ScannedRows& rows) {
  ByteWriter writer;
  writer.reserve(64 + rows.keys.size() * sizeof(Key) + rows.floats.size() * sizeof(float));
  writer.put(rows.next);
  writer.put(rows.nonzero);
  put_array(writer, rows.keys);
  put_array(writer, rows.floats);
  return writer.share();
}

template <>
Result<ScannedRows> decode(Bytes bytes) {
  ByteReader reader(bytes);
  ScannedRows rows;
  rows.next = reader.get<uint64_t>();
  rows.nonzero = reader.get<uint64_t>();
  rows.keys = get_array<Key>(reader);
  rows.floats = get_array<float>(reader);
  TRY(reader.finish("rows of a scan"));
  return rows;
}

SharedBuffer encode(const SetRowsMessage& message) {
  ByteWriter writer;
  writer.put(message.kind);
  put_array(writer, message.keys);
  put_array(writer, message.floats);
  return writer.share();
}

template <>
Result<SetRowsMessage> decode(Bytes bytes) {
  ByteReader reader(bytes);
  bool known = true;
  SetRowsMessage message;
  message.kind = get_enum(reader, ScanKind::kAll, ScanKind::kState, known);
  message.keys = get_array<Key>(reader);
  message.floats = get_array<float>(reader);
  TRY(finish(reader, known, "rows to be set"));
  return message;
}

}  // namespace pscloud

#include "learn/batch_state.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "io/piece_file.h"
#include "learn/checkpoint.pb.h"

namespace pscloud {
namespace {

constexpr std::string_view kStateFileKind = "pscbat01";
constexpr size_t kColumnsInPiece = 1 << 15;
constexpr size_t kColumnStateBytes = sizeof(Key) + 3 * sizeof(double) + 1;
constexpr size_t kRowStateBytes = 2 * sizeof(double) + sizeof(float);
constexpr size_t kPartTextBytesMax = 1 << 16;

enum class StatePiece : uint8_t { kColumns = 1, kRows = 2 };

ByteWriter encode_columns(const Descent& descent, std::span<const uint32_t> columns) {
  ByteWriter writer;
  writer.put(StatePiece::kColumns);
  writer.put(static_cast<uint32_t>(columns.size()));
  for (const uint32_t column : columns) {
    const Descent::ColumnState state = descent.column_state(column);
    writer.put(descent.keys()[column]);
    writer.put(state.weight);
    writer.put(state.delta);
    writer.put(state.earlier);
    writer.put(static_cast<uint8_t>(state.active));
  }
  return writer;
}

ByteWriter encode_rows(const Descent& descent, const BatchExamples::Part& part, size_t first) {
  ByteWriter writer;
  writer.put(StatePiece::kRows);
  writer.put_text(part.text);
  writer.put(part.rows);
  for (size_t row = first; row < first + part.rows; ++row) {
    const Descent::RowState state = descent.row_state(row);
    writer.put(state.score);
    writer.put(state.earlier);
    writer.put(state.slope);
  }
  return writer;
}

// Of this worker's columns, all of which stand in `columns` from `at` on if they have the keys of the piece.
Result<> decode_columns(ByteReader& reader, std::span<const uint32_t> columns, size_t& at, Descent& descent) {
  const size_t count = reader.get_count(kColumnStateBytes);
  for (size_t i = 0; i < count; ++i) {
    const Key key = reader.get<Key>();
    Descent::ColumnState state;
    state.weight = reader.get<double>();
    state.delta = reader.get<double>();
    state.earlier = reader.get<double>();
    state.active = reader.get<uint8_t>() != 0;
    while (at < columns.size() && descent.keys()[columns[at]] < key) ++at;
    if (at < columns.size() && descent.keys()[columns[at]] == key) descent.set_column_state(columns[at], state);
  }
  return reader.finish("columns of a checkpoint");
}

}  // namespace

void put_position(const BatchPosition& position, PS::LM::BatchPosition& out) {
  out.set_iteration(position.iteration);
  out.set_objective(position.objective);
  out.set_momentum(position.momentum);
  out.set_threshold(position.threshold);
  out.set_all_active(position.all_active);
  if (position.delay_max != UINT32_MAX) out.set_delay_max(position.delay_max);
  if (!std::isfinite(position.early.best)) return;
  out.set_best_logloss(position.early.best);
  out.set_worse_iterations(position.early.worse);
}

BatchPosition get_position(const PS::LM::BatchPosition& position) {
  BatchPosition found{.iteration = position.iteration(),
                      .objective = position.objective(),
                      .momentum = position.momentum(),
                      .threshold = position.threshold(),
                      .all_active = position.all_active()};
  if (position.has_delay_max()) found.delay_max = position.delay_max();
  if (position.has_best_logloss()) found.early = {position.best_logloss(), position.worse_iterations()};
  return found;
}

Result<uint64_t> write_batch_state(FileStore& store, const std::string& uri, const Descent& descent,
                                   std::span<const uint32_t> columns, std::span<const BatchExamples::Part> parts) {
  PieceWriter writer(TRY(store.create(uri)), kStateFileKind);
  for (size_t begin = 0; begin < columns.size(); begin += kColumnsInPiece) {
    const auto some = columns.subspan(begin, std::min(kColumnsInPiece, columns.size() - begin));
    TRY(writer.write(encode_columns(descent, some).bytes()));
  }
  size_t row = 0;
  for (const BatchExamples::Part& part : parts) {
    TRY(writer.write(encode_rows(descent, part, row).bytes()));
    row += part.rows;
  }
  TRY(writer.commit());
  return writer.check();
}

Result<> read_batch_state(FileStore& store, const std::string& uri, std::span<const uint32_t> columns,
                          std::span<const BatchExamples::Part> parts, Descent& descent, std::vector<uint8_t>& found) {
  found.resize(parts.size());
  // A part that is wanted several times has the same scores each time.
  struct Place {
    size_t part;
    size_t row;
  };
  std::multimap<std::string_view, Place> places;
  size_t row = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    places.emplace(parts[i].text, Place{i, row});
    row += parts[i].rows;
  }
  PieceReader pieces = TRY(PieceReader::open(store, uri, kStateFileKind));
  std::vector<std::byte> memory;
  size_t at = 0;
  while (const auto piece = TRY(pieces.next(memory))) {
    ByteReader reader(*piece);
    if (reader.get<StatePiece>() == StatePiece::kColumns) {
      TRY(decode_columns(reader, columns, at, descent).at(uri));
      continue;
    }
    const std::string text = reader.get_text(kPartTextBytesMax);
    const auto count = reader.get<uint64_t>();
    if (!reader.ok() || reader.left() / kRowStateBytes != count || reader.left() % kRowStateBytes != 0)
      return corrupt("{}: rows that cannot be", uri);
    const Bytes states = reader.get_raw(reader.left());
    const auto [first, last] = places.equal_range(text);
    for (auto mine = first; mine != last; ++mine) {
      const Place& place = mine->second;
      const uint64_t rows = parts[place.part].rows;
      if (rows != count) return invalid("{}: had {} examples, and has {}", text, count, rows);
      ByteReader values(states);
      for (size_t i = 0; i < count; ++i) {
        Descent::RowState state;
        state.score = values.get<double>();
        state.earlier = values.get<double>();
        state.slope = values.get<float>();
        descent.set_row_state(place.row + i, state);
      }
      found[place.part] = 1;
    }
  }
  return {};
}

Result<uint64_t> verify_batch_state(FileStore& store, const std::string& uri) {
  PieceReader pieces = TRY(PieceReader::open(store, uri, kStateFileKind));
  std::vector<std::byte> memory;
  while (TRY(pieces.next(memory))) continue;
  return pieces.check();
}

}  // namespace pscloud

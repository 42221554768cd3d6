#include "data/block_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "base/log.h"

namespace pscloud {
namespace {

constexpr std::string_view kBlockFileKind = "pscblk02";
constexpr size_t kReasonBytesMax = 1 << 12;
constexpr uint64_t kEndBytes = 64 << 10;  // of the source, at both ends, that are looked at

Result<uint64_t> hash_of_range(FileStore& store, const std::string& uri, const ByteRange& range) {
  const auto input = TRY(store.open(uri, range));
  return hash64(bytes_of(TRY(read_all(*input, kEndBytes))));
}

// Begins as rows do that are none.
ByteWriter encode_summary(const ReadSummary& summary) {
  ByteWriter writer;
  writer.put(uint32_t{0});
  writer.put(summary.stored_bytes);
  writer.put(summary.bad.count);
  writer.put(static_cast<uint32_t>(summary.bad.first.size()));
  for (const BadLines::One& one : summary.bad.first) {
    writer.put(one.offset);
    writer.put_text(std::string_view(one.reason).substr(0, kReasonBytesMax));
  }
  return writer;
}

Result<ReadSummary> decode_summary(Bytes bytes) {
  ByteReader reader(bytes);
  reader.get<uint32_t>();
  ReadSummary summary;
  summary.stored_bytes = reader.get<uint64_t>();
  summary.bad.count = reader.get<uint64_t>();
  summary.bad.first.resize(std::min(reader.get_count(sizeof(uint64_t)), BadLines::kKept));
  for (BadLines::One& one : summary.bad.first) {
    one.offset = reader.get<uint64_t>();
    one.reason = reader.get_text(kReasonBytesMax);
  }
  TRY(reader.finish("the end of a block cache"));
  return summary;
}

}  // namespace

Result<bool> BlockReader::next(NumberedRows& rows) {
  const auto piece = TRY(pieces_.next(rows.memory()));
  if (!piece) return corrupt("a block cache without its end");
  uint32_t count = 0;
  std::memcpy(&count, piece->data(), std::min(piece->size(), sizeof count));
  if (count > 0) {
    TRY(rows.decode(piece->size()));
    return true;
  }
  summary_ = TRY(decode_summary(*piece));
  std::vector<std::byte> nothing;
  if (TRY(pieces_.next(nothing))) return corrupt("a block cache goes on behind its end");
  return false;
}

Result<> BlockWriter::write(const NumberedRows& rows) { return pieces_.write(rows.bytes()); }

Result<> BlockWriter::commit(const ReadSummary& summary) {
  TRY(pieces_.write(encode_summary(summary).bytes()));
  return pieces_.commit();
}

std::string BlockCache::file_of(const FilePart& part) const {
  // Not of its version: what was made of an older one is replaced.
  const FilePart of_any{.uri = part.uri, .begin = part.begin, .end = part.end};
  return fmt::format("{}{}.{:016x}", prefix_, last_name(part.uri), hash64(bytes_of(to_text(of_any))));
}

Result<std::string> BlockCache::identity_of(const FilePart& part) const {
  const FileInfo info = TRY(source_.stat(part.uri));
  const std::string what = fmt::format("{} {} {} {}", info.size, info.version, reading_, to_text(part));
  // What the store itself calls a version needs no second look, which would be two requests for each part.
  if (info.version_is_global) return what;
  const uint64_t tail = info.size - std::min(info.size, kEndBytes);
  const uint64_t first = TRY(hash_of_range(source_, part.uri, {0, std::min(info.size, kEndBytes)}));
  const uint64_t last = TRY(hash_of_range(source_, part.uri, {tail, info.size}));
  return fmt::format("{:016x} {:016x} {}", first, last, what);
}

Result<std::optional<BlockReader>> BlockCache::open(const FilePart& part) {
  const std::string file = file_of(part);
  auto pieces = PieceReader::open(cached_, file, kBlockFileKind);
  if (!pieces && pieces.error().code == Code::kNotFound) return std::nullopt;
  std::vector<std::byte> memory;
  const auto identity = pieces ? pieces->next(memory) : pieces.error();
  if (!identity) {
    if (identity.error().code != Code::kCorrupt) return identity.error();
    log_warning("{}; it is made anew", identity.error().message);
    return std::nullopt;
  }
  const std::string wanted = TRY(identity_of(part));
  if (!*identity || !std::ranges::equal(**identity, bytes_of(wanted))) {
    if (!std::exchange(told_of_other_, true)) {
      log_warning("{}: {} has changed since, or is read in another way now; the cache is made anew", file, part.uri);
    }
    return std::nullopt;
  }
  return std::optional(BlockReader(*std::move(pieces)));
}

Result<BlockWriter> BlockCache::create(const FilePart& part) const {
  const std::string identity = TRY(identity_of(part));
  PieceWriter pieces(TRY(cached_.create(file_of(part))), kBlockFileKind);
  TRY(pieces.write(bytes_of(identity)));
  return BlockWriter(std::move(pieces));
}

}  // namespace pscloud

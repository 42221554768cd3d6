#include "data/block_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/log.h"

namespace pscloud {
namespace {

constexpr uint64_t kBlockMagic = 0x31306b6c62637370;  // "pscblk01"
constexpr size_t kIdentityBytesMax = 1 << 16;
constexpr uint64_t kEndBytes = 64 << 10;  // of the source, at both ends, that are looked at
constexpr uint64_t kBlockBytesMax = uint64_t{16} << 30;

constexpr uint32_t kBlockHasValues = 1;
constexpr uint32_t kBlockHasGroups = 2;

Result<uint64_t> hash_of_range(FileStore& store, const std::string& uri, const ByteRange& range) {
  const auto input = TRY(store.open(uri, range));
  return hash64(bytes_of(TRY(read_all(*input, kEndBytes))));
}

template <class T>
void put_array(ByteWriter& writer, const std::vector<T>& values) {
  writer.put_raw(bytes_of(std::span<const T>(values)));
}

template <class T>
bool get_array(ByteReader& reader, uint64_t count, std::vector<T>& values) {
  if (count > reader.left() / sizeof(T)) return false;
  const Bytes raw = reader.get_raw(count * sizeof(T));
  values.resize(count);
  if (count > 0) std::memcpy(values.data(), raw.data(), raw.size());
  return true;
}

}  // namespace

std::string encode_block(const ReadPart& read, const std::string& identity) {
  const RowBlock& rows = read.rows;
  ByteWriter body;
  body.put_text(identity);
  body.put(read.bad_lines);
  body.put(static_cast<uint64_t>(rows.rows()));
  body.put(static_cast<uint64_t>(rows.keys.size()));
  body.put(
      static_cast<uint32_t>((rows.values.empty() ? 0 : kBlockHasValues) | (rows.groups.empty() ? 0 : kBlockHasGroups)));
  put_array(body, rows.labels);
  for (size_t row = 0; row < rows.rows(); ++row) body.put(static_cast<uint32_t>(rows.keys_of(row).size()));
  put_array(body, rows.keys);
  put_array(body, rows.values);
  put_array(body, rows.groups);
  ByteWriter file;
  file.put(kBlockMagic);
  file.put(hash64(body.bytes()));
  file.put_raw(body.bytes());
  return {reinterpret_cast<const char*>(file.bytes().data()), file.size()};
}

Result<std::optional<ReadPart>> decode_block(std::string_view bytes, const std::string& identity) {
  ByteReader file(bytes_of(bytes));
  if (file.get<uint64_t>() != kBlockMagic) return corrupt("it does not begin as a block cache does");
  const auto hash = file.get<uint64_t>();
  const Bytes body = file.get_raw(file.left());
  if (!file.ok() || hash64(body) != hash) return corrupt("its checksum is wrong");
  ByteReader reader(body);
  if (reader.get_text(kIdentityBytesMax) != identity) return std::nullopt;
  ReadPart read;
  RowBlock& rows = read.rows;
  read.bad_lines = reader.get<uint64_t>();
  const auto count = reader.get<uint64_t>();
  const auto features = reader.get<uint64_t>();
  const auto flags = reader.get<uint32_t>();
  std::vector<uint32_t> sizes;
  bool whole = get_array(reader, count, rows.labels) && get_array(reader, count, sizes) &&
               get_array(reader, features, rows.keys);
  if ((flags & kBlockHasValues) != 0) whole = whole && get_array(reader, features, rows.values);
  if ((flags & kBlockHasGroups) != 0) whole = whole && get_array(reader, features, rows.groups);
  if (!whole) return corrupt("it is cut short");
  TRY(reader.finish("a block cache"));
  size_t end = 0;
  for (const uint32_t size : sizes) rows.ends.push_back(end += size);
  if (end != features) return corrupt("its rows have {} features, it has {}", end, features);
  return read;
}

std::string BlockCache::file_of(const FilePart& part) const {
  const size_t slash = part.uri.rfind('/');
  const std::string name = slash == std::string::npos ? part.uri : part.uri.substr(slash + 1);
  return fmt::format("{}{}.{:016x}", prefix_, name, hash64(bytes_of(to_text(part))));
}

Result<std::string> BlockCache::identity_of(const FilePart& part) {
  const FileInfo info = TRY(store_.stat(part.uri));
  const uint64_t tail = info.size - std::min(info.size, kEndBytes);
  const uint64_t first = TRY(hash_of_range(store_, part.uri, {0, std::min(info.size, kEndBytes)}));
  const uint64_t last = TRY(hash_of_range(store_, part.uri, {tail, info.size}));
  return fmt::format("{} {} {:016x} {:016x} {} {}", info.size, info.version, first, last, reading_, to_text(part));
}

Result<std::optional<ReadPart>> BlockCache::load(const FilePart& part) {
  const std::string file = file_of(part);
  const auto input = store_.open(file, {});
  if (!input) {
    if (input.error().code == Code::kNotFound) return std::nullopt;
    return input.error();
  }
  const std::string bytes = TRY(read_all(**input, kBlockBytesMax));
  auto read = decode_block(bytes, TRY(identity_of(part)));
  if (!read) {
    log_warning("{}: {}; it is made anew", file, read.error().message);
    return std::nullopt;
  }
  return read;
}

Result<> BlockCache::save(const FilePart& part, const std::string& identity, const ReadPart& read) {
  const auto output = TRY(store_.create(file_of(part)));
  TRY(output->write(encode_block(read, identity)));
  return output->commit();
}

}  // namespace pscloud

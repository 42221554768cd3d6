#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "io/file_store.h"

namespace pscloud {

enum class Compression { kNone, kGzip, kZstd };

// The first four bytes of a file as it is stored, or fewer if it has no more: enough to tell by what it is.
Result<std::string> first_bytes(FileStore& store, const std::string& uri);

// By the first bytes of a file: names lie.
Compression compression_of(std::string_view first_bytes);
Result<Compression> compression_of(FileStore& store, const std::string& uri);

// What `input` reads, decompressed if it is gzip's or zstd's; several members or frames one after the other are one
// text. `name` is for errors. kCorrupt if it is damaged or ends too early.
Result<std::unique_ptr<Input>> decompress(std::unique_ptr<Input> input, std::string name);

// A file's contents, decompressed, from byte `range.begin` of them on. What is compressed is read from its beginning
// all the same.
Result<std::unique_ptr<Input>> open_decompressed(FileStore& store, const std::string& uri, ByteRange range = {});

}  // namespace pscloud

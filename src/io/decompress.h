#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "io/file_store.h"

namespace pscloud {

enum class Compression { kNone, kGzip, kZstd };

// By the first bytes of a file: names lie.
Compression compression_of(std::string_view first_bytes);
Result<Compression> compression_of(FileStore& store, const std::string& uri);

// What `input` reads, decompressed if it is gzip's or zstd's; several members or frames one after the other are one
// text. `name` is for errors. kCorrupt if it is damaged or ends too early.
Result<std::unique_ptr<Input>> decompress(std::unique_ptr<Input> input, std::string name);

// A file's contents from the beginning, decompressed. The range is that of the stored bytes, and begins with the first.
Result<std::unique_ptr<Input>> open_decompressed(FileStore& store, const std::string& uri, ByteRange range = {});

}  // namespace pscloud

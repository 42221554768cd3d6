#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "io/file_store.h"
#include "pscloud/error.h"

namespace pscloud {

// A file of pieces, each with its size and a checksum that depends on all before it: what is cut short, damaged or put
// together of two files is noticed. docs/block-cache.md has the bytes.
class PieceWriter {
 public:
  // `kind`: eight letters that such a file begins with.
  PieceWriter(std::unique_ptr<Output> output, std::string_view kind);

  Result<> write(Bytes piece);  // not empty
  // The file is there when this returns.
  Result<> commit();

  uint64_t check() const { return check_; }  // after commit(): depends on all of the file

 private:
  Result<> put(Bytes piece);

  std::unique_ptr<Output> output_;
  std::string_view kind_;  // empty once it is written
  uint64_t check_;
};

class PieceReader {
 public:
  // kCorrupt if it does not begin with `kind`.
  static Result<PieceReader> open(FileStore& store, const std::string& uri, std::string_view kind);

  // The next piece, at the front of `memory`, which is made larger if need be; nothing at the end. kCorrupt says what
  // is wrong with it; then hardly more memory was taken than the file has bytes.
  Result<std::optional<Bytes>> next(std::vector<std::byte>& memory);

  uint64_t check() const { return check_; }  // at the end: as the writer's

 private:
  PieceReader(std::unique_ptr<Input> input, std::string uri) : input_(std::move(input)), uri_(std::move(uri)) {}
  Result<> read(std::vector<std::byte>& memory, size_t from, size_t size);

  std::unique_ptr<Input> input_;
  std::string uri_;
  uint64_t check_ = 0;
  uint64_t size_ = 0;  // of the next piece, and
  uint64_t next_check_ = 0;
};

}  // namespace pscloud

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "io/file_store.h"
#include "pscloud/error.h"
#include "pscloud/types.h"

namespace pscloud {

// Rows of a table in a binary file with checksums: a model, or a part of a checkpoint. docs/model-format.md has the
// bytes.
struct RowFileInfo {
  uint32_t width = 1;   // values of a row
  uint32_t floats = 1;  // of a row: the values, then what the updater keeps beside them; in a model none of that
  uint64_t rows = 0;
  uint32_t check = 0;  // the last checksum, which depends on all of the file
};

class RowFileWriter {
 public:
  RowFileWriter(std::unique_ptr<Output> output, uint32_t width);

  // As many floats of each key, `width` or more, and in every call the same.
  Result<> write(std::span<const Key> keys, std::span<const float> floats);
  // The file is there when this returns.
  Result<> commit();

  const RowFileInfo& info() const { return info_; }  // whole after commit()

 private:
  Result<> write_header(uint32_t floats);
  Result<> write_block(std::span<const Key> keys, std::span<const float> floats);
  Result<> write_checked(ByteWriter& bytes);

  std::unique_ptr<Output> output_;
  RowFileInfo info_;
  bool begun_ = false;
  std::vector<uint32_t> checks_;
};

// It begins as such a file does.
Result<bool> is_row_file(FileStore& store, const std::string& uri);

// Gives `take` all rows of a file, many at a time, in its order; what is known of the file by then is its header.
// kCorrupt says what is wrong: it is none, is cut short, or is damaged, and where. Rows are given block by block, each
// checked: those before a damaged one have been taken when the error comes.
Result<RowFileInfo> read_row_file(
    FileStore& store, const std::string& uri,
    const std::function<Result<>(const RowFileInfo&, std::span<const Key>, std::span<const float>)>& take);

}  // namespace pscloud

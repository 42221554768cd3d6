#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/file_part.h"
#include "data/numbered_rows.h"
#include "data/parser.h"
#include "io/piece_file.h"

namespace pscloud {

// What reading a part of a file came to, beside its rows.
struct ReadSummary {
  uint64_t stored_bytes = 0;  // of the file, as it is stored
  BadLines bad;               // by their places in the file
};

// A part of a file that was read before, block by block. One thread.
class BlockReader {
 public:
  // False at the end. kCorrupt if the file is damaged: what came before was right.
  Result<bool> next(NumberedRows& rows);
  const ReadSummary& summary() const { return summary_; }  // after the end

 private:
  friend class BlockCache;
  explicit BlockReader(PieceReader pieces) : pieces_(std::move(pieces)) {}

  PieceReader pieces_;
  ReadSummary summary_;
};

// One that is being read for the first time.
class BlockWriter {
 public:
  Result<> write(const NumberedRows& rows);  // not none
  // It is there for the next reader when this returns.
  Result<> commit(const ReadSummary& summary);

 private:
  friend class BlockCache;
  explicit BlockWriter(PieceWriter pieces) : pieces_(std::move(pieces)) {}

  PieceWriter pieces_;
};

// Parts of files that were read before, as files of their own, so that they need not be parsed again, nor their keys
// numbered. Such a file tells what it was made of: when the source has another size, time or content at its ends, or is
// read in another way, it is made anew. docs/block-cache.md has its bytes. Borrows the stores. One thread.
class BlockCache {
 public:
  // Files of `cached` whose names begin with `prefix`. `reading` says how files of `source` become rows: the format,
  // and what else they depend on.
  BlockCache(FileStore& source, FileStore& cached, std::string prefix, std::string reading)
      : source_(source), cached_(cached), prefix_(std::move(prefix)), reading_(std::move(reading)) {}

  // Nothing if it is not there, or no longer right. The log names what is damaged, and the first that is of something
  // else: the others will be, too.
  Result<std::optional<BlockReader>> open(const FilePart& part);
  // To be called before the part is read, or it might be taken for what it became meanwhile.
  Result<BlockWriter> create(const FilePart& part) const;

  std::string file_of(const FilePart& part) const;

 private:
  Result<std::string> identity_of(const FilePart& part) const;

  FileStore& source_;
  FileStore& cached_;
  std::string prefix_;
  std::string reading_;
  bool told_of_other_ = false;
};

}  // namespace pscloud

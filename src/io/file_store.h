#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pscloud/error.h"

namespace pscloud {

// A file, wherever it is.
struct FileInfo {
  std::string uri;
  uint64_t size = 0;
  std::string version;  // differs once the file has changed: its time, or what the store calls its version; no spaces
  bool version_is_global = false;  // the same whoever asks, from whatever machine
  bool gives_parts = true;         // to read from a place in its middle costs no more than what is read
};

// What to read of a file.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = std::numeric_limits<uint64_t>::max();  // the file's, if that comes first
  // More than up to here will hardly be wanted: who reads ahead stops there.
  uint64_t ahead_end = std::numeric_limits<uint64_t>::max();
  // And of what comes before it has no more than this that nobody has asked for yet.
  uint64_t ahead_bytes_max = std::numeric_limits<uint64_t>::max();
  std::string version = {};  // kFailed if the file has another; empty: any will do
};

// A file being read, from front to back. One thread at a time; not after an error.
class Input {
 public:
  virtual ~Input() = default;

  // Fills the front of `out`, and returns how much of it: none at the end only.
  virtual Result<size_t> read(std::span<char> out) = 0;
};

// A file being written. Nobody sees it under its name before commit(); without that nothing is left of it.
class Output {
 public:
  virtual ~Output() = default;

  virtual Result<> write(std::string_view bytes) = 0;
  virtual Result<> commit() = 0;
};

// Where files are. Thread-safe; outlives what it opens and creates.
class FileStore {
 public:
  virtual ~FileStore() = default;

  virtual Result<FileInfo> stat(const std::string& uri) = 0;
  // The files directly in a folder, with or without a last '/', by name. Those whose names begin with a dot are hidden.
  virtual Result<std::vector<FileInfo>> list(const std::string& folder) = 0;
  // The folders directly in a folder, each with its last '/', by name.
  virtual Result<std::vector<std::string>> list_folders(const std::string& folder) = 0;
  // Its bytes as they are stored.
  virtual Result<std::unique_ptr<Input>> open(const std::string& uri, ByteRange range) = 0;
  // Replaces what has that name. Folders that are missing are made.
  virtual Result<std::unique_ptr<Output>> create(const std::string& uri) = 0;
  // Whether create() and commit() would do, as far as can be told without them. Leaves nothing.
  virtual Result<> check_create(const std::string& uri) {
    TRY(create(uri));
    return {};
  }
  // Ok if there is no such file. kInvalid where files cannot be removed.
  virtual Result<> remove(const std::string& uri) { return invalid("{}: files here cannot be removed", uri); }
  // Removes what processes that were killed have left of files whose names begin so, and that they never committed.
  // Nobody may be writing such a file.
  virtual Result<> remove_unfinished(const std::string& uri_begin) {
    (void)uri_begin;
    return {};
  }
};

// The files of this machine: plain paths, or file:///path.
std::unique_ptr<FileStore> make_local_store();

// Files wherever they are: plain paths and file://, s3:// (s3_store.h), http:// and https:// (http_store.h).
// `cancelled` ends waits for the network; any thread may ask it.
std::unique_ptr<FileStore> make_file_store(const std::function<bool()>& cancelled = {});

// Whether it names a file of a web server: of these there are no lists, and '?' is part of their names.
bool is_web_uri(std::string_view uri);

// What a copy of a file is called: what follows the last '/', of a web server's without what follows '?' or '#'.
std::string last_name(std::string_view uri);

// "has changed ...": of a file that is not the version it should be.
Error version_changed(const std::string& uri, const std::string& wanted, const std::string& found);

// All that is left of it. kInvalid if that is more than `bytes_max`.
Result<std::string> read_all(Input& input, uint64_t bytes_max);

}  // namespace pscloud

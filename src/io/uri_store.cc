#include <utility>

#include "io/file_store.h"
#include "io/http_store.h"
#include "io/s3_store.h"

namespace pscloud {
namespace {

// Hands each file to the store that its URI names.
class UriStore final : public FileStore {
 public:
  explicit UriStore(const std::function<bool()>& cancelled)
      : local_(make_local_store()),
        s3_(make_s3_store(process_aws_variables(), cancelled)),
        http_(make_http_store(cancelled)) {}

  Result<FileInfo> stat(const std::string& uri) override { return TRY(store_of(uri))->stat(uri); }
  Result<std::vector<FileInfo>> list(const std::string& folder) override { return TRY(store_of(folder))->list(folder); }
  Result<std::vector<std::string>> list_folders(const std::string& folder) override {
    return TRY(store_of(folder))->list_folders(folder);
  }
  Result<std::unique_ptr<Input>> open(const std::string& uri, ByteRange range) override {
    return TRY(store_of(uri))->open(uri, std::move(range));
  }
  Result<std::unique_ptr<Output>> create(const std::string& uri) override { return TRY(store_of(uri))->create(uri); }
  Result<> check_create(const std::string& uri) override { return TRY(store_of(uri))->check_create(uri); }
  Result<> remove(const std::string& uri) override { return TRY(store_of(uri))->remove(uri); }
  Result<> remove_unfinished(const std::string& uri_begin) override {
    return TRY(store_of(uri_begin))->remove_unfinished(uri_begin);
  }

 private:
  Result<FileStore*> store_of(const std::string& uri) {
    const size_t colon = uri.find("://");
    const std::string scheme = uri.substr(0, colon);
    if (colon == std::string::npos || scheme == "file") return local_.get();
    if (scheme == "s3") return s3_.get();
    if (scheme == "http" || scheme == "https") return http_.get();
    return invalid("{}: no store for {}://; there are s3://, http://, https:// and file://", uri, scheme);
  }

  const std::unique_ptr<FileStore> local_;
  const std::unique_ptr<FileStore> s3_;
  const std::unique_ptr<FileStore> http_;
};

}  // namespace

std::unique_ptr<FileStore> make_file_store(const std::function<bool()>& cancelled) {
  return std::make_unique<UriStore>(cancelled);
}

}  // namespace pscloud

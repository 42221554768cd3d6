#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/aws_credentials.h"
#include "io/file_store.h"

namespace pscloud {

// One page of a list of objects.
struct S3Page {
  struct Object {
    std::string key;
    uint64_t size = 0;
    std::string etag;  // without quotes
  };
  std::vector<Object> objects;
  std::vector<std::string> prefixes;
  std::string next;  // where the next page begins; empty if this is the last
};

// What ListObjectsV2 answers. kCorrupt if it is anything else.
Result<S3Page> parse_s3_page(std::string_view xml);

// Files of S3 and what speaks like it: s3://bucket/key. What stands before a '/' in a key is a folder. The environment
// says where it is and whose keys to sign by: docs/storage.md. `cancelled` ends waits; any thread may ask it.
std::unique_ptr<FileStore> make_s3_store(AwsVariables environment, const std::function<bool()>& cancelled = {});

}  // namespace pscloud

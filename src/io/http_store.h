#pragma once

#include <functional>
#include <memory>

#include "io/file_store.h"

namespace pscloud {

// Files of web servers, http:// and https://, to be read only. In blocks if the server gives parts of files; else as a
// whole, up to kWholeBytesMax. There are no lists and no passwords. `cancelled` ends waits; any thread may ask it.
std::unique_ptr<FileStore> make_http_store(const std::function<bool()>& cancelled = {});

}  // namespace pscloud

#include "io/file_store.h"

#include <algorithm>

namespace pscloud {

bool is_web_uri(std::string_view uri) { return uri.starts_with("http://") || uri.starts_with("https://"); }

std::string last_name(std::string_view uri) {
  if (is_web_uri(uri)) uri = uri.substr(0, uri.find_first_of("?#"));
  return std::string(uri.substr(uri.rfind('/') + 1));
}

Error version_changed(const std::string& uri, const std::string& wanted, const std::string& found) {
  return job_failed("{}: has changed since the run began: it was version {}, and is {} now", uri, wanted,
                    found.empty() ? "another" : found);
}

Result<std::string> read_all(Input& input, uint64_t bytes_max) {
  std::string text;
  size_t size = 0;
  while (true) {
    if (size == text.size()) text.resize(std::max<size_t>(64 << 10, text.size() * 2));
    const size_t count = TRY(input.read(std::span(text).subspan(size)));
    if (count == 0) break;
    size += count;
    if (size > bytes_max) return invalid("more than {} bytes", bytes_max);
  }
  text.resize(size);
  return text;
}

}  // namespace pscloud

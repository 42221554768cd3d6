#include "io/content_range.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"

namespace pscloud {

std::string range_header(uint64_t begin, uint64_t end) { return fmt::format("bytes={}-{}", begin, end - 1); }

Result<uint64_t> whole_number(std::string_view text) {
  uint64_t number = 0;
  if (!parse_number(text, uint64_t{0}, UINT64_MAX, number)) return corrupt("'{}' is no size", text);
  return number;
}

Result<uint64_t> whole_size(const HttpResponse& response, uint64_t begin, uint64_t end) {
  const std::string header = response.header("content-range");
  std::string_view left = header;
  const Error wrong = corrupt("a part of a file was asked for, but status {} came with '{}' and {} bytes",
                              response.status, header, response.body.size());
  if (response.status != 206 || !left.starts_with("bytes ")) return wrong;
  left.remove_prefix(6);
  const size_t dash = left.find('-');
  const size_t slash = left.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || slash < dash) return wrong;
  const auto first = whole_number(left.substr(0, dash));
  const auto last = whole_number(left.substr(dash + 1, slash - dash - 1));
  const auto size = whole_number(left.substr(slash + 1));
  if (!first || !last || !size || *first != begin || *last < begin || *last >= *size) return wrong;
  if (*last + 1 != std::min(end, *size) || response.body.size() != *last + 1 - begin) return wrong;
  return *size;
}

std::string version_of_etag(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() < 2 || etag.front() != '"' || etag.back() != '"') return "";
  const std::string_view inside = etag.substr(1, etag.size() - 2);
  const bool plain = std::ranges::all_of(inside, [](char c) { return c > ' ' && c < '\x7f' && c != '"'; });
  return plain ? std::string(inside) : "";
}

}  // namespace pscloud

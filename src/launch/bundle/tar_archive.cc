#include "launch/bundle/tar_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pscloud {
namespace {

constexpr size_t kTarBlock = 512;
constexpr size_t kTarNameMax = 100;
constexpr uint64_t kTarSizeMax = (uint64_t{1} << 33) - 1;  // eleven octal digits

void put_text(std::array<char, kTarBlock>& header, size_t at, std::string_view text) {
  std::ranges::copy(text, header.begin() + static_cast<ptrdiff_t>(at));
}

std::string tar_header(const TarFile& file) {
  std::array<char, kTarBlock> header{};
  const bool is_folder = file.path.ends_with('/');
  put_text(header, 0, file.path);
  put_text(header, 100, fmt::format("{:07o}", file.mode));
  put_text(header, 108, "0000000");  // user
  put_text(header, 116, "0000000");  // group
  put_text(header, 124, fmt::format("{:011o}", file.content.size()));
  put_text(header, 136, "00000000000");  // time
  put_text(header, 148, "        ");     // of the sum, while it is made
  header[156] = is_folder ? '5' : '0';
  put_text(header, 257,
           std::string_view("ustar\0"
                            "00",
                            8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put_text(header, 148, fmt::format("{:06o}", sum));
  header[154] = '\0';
  return std::string(header.data(), header.size());
}

}  // namespace

Result<std::string> tar_archive(const std::vector<TarFile>& files) {
  std::string archive;
  for (const TarFile& file : files) {
    if (file.path.empty() || file.path.size() > kTarNameMax || file.path.front() == '/') {
      return invalid("'{}' cannot stand in an archive: 1 to {} bytes, without '/' in front", file.path, kTarNameMax);
    }
    if (file.content.size() > kTarSizeMax) return invalid("'{}' is too long for an archive", file.path);
    archive += tar_header(file);
    archive += file.content;
    archive.append((kTarBlock - file.content.size() % kTarBlock) % kTarBlock, '\0');
  }
  archive.append(2 * kTarBlock, '\0');
  return archive;
}

}  // namespace pscloud

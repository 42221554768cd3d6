#include "launch/bundle/bundle.h"

#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "base/fd.h"
#include "base/hash.h"
#include "launch/bundle/elf.h"
#include "launch/bundle/tar_archive.h"
#include "launch/process/own_program.h"

namespace pscloud {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBinaryName = "pscloud";

// What the loader has loaded: full paths; the program itself and what the kernel adds have none.
std::vector<std::string> loaded_libraries() {
  std::vector<std::string> paths;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
        if (path.starts_with('/')) static_cast<std::vector<std::string>*>(out)->emplace_back(path);
        return 0;
      },
      &paths);
  return paths;
}

// As it is sent: what debuggers read would be most of it.
Result<std::string> read_to_send(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0) return unavailable("cannot read '{}'", path);
  std::string bytes(static_cast<size_t>(size), '\0');
  file.seekg(0).read(bytes.data(), size);
  if (!file) return unavailable("cannot read '{}'", path);
  return without_debugging(std::move(bytes));
}

bool is_loader(std::string_view name) { return name.starts_with("ld-") || name.starts_with("ld64"); }

}  // namespace

Result<Bundle> own_bundle() {
  Bundle bundle;
  bundle.files.push_back({kBinaryName, own_binary()});
  std::set<std::string> names{kBinaryName};
  for (const std::string& path : loaded_libraries()) {
    const std::string name = fs::path(path).filename().string();
    if (name.starts_with("linux-vdso") || path == own_binary() || !names.insert(name).second) continue;
    bundle.files.push_back({name, path});
    if (is_loader(name)) bundle.loader = name;
  }
  if (bundle.loader.empty()) return unavailable("cannot find the loader of this program");
  std::ranges::sort(bundle.files, {}, &Bundle::File::name);
  std::string sums;  // of what is sent: a launcher that runs from a bundle finds that bundle on other machines
  for (const Bundle::File& file : bundle.files) {
    const std::string bytes = TRY(read_to_send(file.path));
    const Hash128 hash = hash128(std::as_bytes(std::span(bytes)));
    sums += fmt::format("{} {:016x}{:016x}\n", file.name, hash.high, hash.low);
  }
  const Hash128 all = hash128(std::as_bytes(std::span(sums)));
  bundle.hash = fmt::format("{:016x}{:016x}", all.high, all.low);
  return bundle;
}

std::vector<std::string> bundle_command(const Bundle& bundle, const std::string& folder) {
  return {folder + "/" + bundle.loader, "--library-path", folder, "--argv0", kBinaryName, folder + "/" + kBinaryName};
}

Result<> copy_bundle(const Bundle& bundle, const std::string& folder) {
  for (const Bundle::File& file : bundle.files) {
    const std::string bytes = TRY(read_to_send(file.path));
    const fs::path target = fs::path(folder) / file.name;
    std::ofstream copy(target, std::ios::binary | std::ios::trunc);
    copy << bytes;
    copy.close();
    if (!copy) return unavailable("cannot write '{}': {}", target.string(), errno_text(errno));
    std::error_code error;
    fs::permissions(target, fs::perms{0755}, error);  // whatever the user's mask is: a queue may run it as another
    if (error) return unavailable("cannot make '{}' executable: {}", target.string(), error.message());
  }
  return {};
}

Result<std::string> bundle_tar(const Bundle& bundle) {
  std::vector<TarFile> files;
  for (const Bundle::File& file : bundle.files) {
    const bool runs = file.name == kBinaryName || file.name == bundle.loader;
    files.push_back({file.name, TRY(read_to_send(file.path)), runs ? 0755 : 0644});
  }
  return tar_archive(files);
}

}  // namespace pscloud

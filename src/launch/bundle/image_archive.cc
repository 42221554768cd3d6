#include "launch/bundle/image_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/json.h"
#include "io/aws_signature.h"
#include "io/file_store.h"
#include "launch/bundle/bundle.h"
#include "launch/bundle/elf.h"
#include "launch/process/own_program.h"

namespace pscloud {
namespace {

constexpr const char* kNoTime = "1970-01-01T00:00:00Z";
constexpr const char* kAuthorities = "/etc/ssl/certs/ca-certificates.crt";  // where our libcurl looks
constexpr size_t kImageNameMax = 255;
constexpr uint64_t kLibraryBytesMax = uint64_t{1} << 30;
#if defined(__aarch64__)
constexpr const char* kArchitecture = "arm64";
#else
constexpr const char* kArchitecture = "amd64";
#endif

Result<std::string> read_library(const std::string& path) {
  const auto store = make_local_store();
  const auto input = TRY(store->open(path, {}).at(path));
  return read_all(*input, kLibraryBytesMax).at(path);
}

// Each folder once, before what is in it, and everything in the order of names.
std::vector<TarFile> with_folders(std::vector<TarFile> files) {
  std::set<std::string> known;
  for (const TarFile& file : files) known.insert(file.path);
  std::vector<TarFile> all = std::move(files);
  for (size_t i = 0, count = all.size(); i < count; ++i) {
    const std::string path = all[i].path;
    for (size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
      const std::string folder = path.substr(0, slash + 1);
      if (known.insert(folder).second) all.push_back({folder, "", 0755});
    }
  }
  std::ranges::sort(all, {}, &TarFile::path);
  return all;
}

void write_array(JsonWriter& json, std::string_view name, const std::vector<std::string>& texts) {
  json.key(name).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

}  // namespace

ImageName split_image_name(std::string_view name) {
  const size_t colon = name.rfind(':');
  const bool has_tag = colon != std::string_view::npos && name.find('/', colon) == std::string_view::npos;
  ImageName parts;
  parts.repository = name.substr(0, has_tag ? colon : name.size());
  parts.tag = has_tag ? name.substr(colon + 1) : "latest";
  const std::string_view first = std::string_view(parts.repository).substr(0, parts.repository.find('/'));
  const bool is_host = first.size() < parts.repository.size() &&
                       (first == "localhost" || first.find_first_of(".:") != std::string_view::npos);
  parts.registry = is_host ? first : "";
  return parts;
}

Result<> check_image_name(std::string_view name) {
  const ImageName parts = split_image_name(name);
  const auto in = [](std::string_view allowed) {
    return [allowed](unsigned char c) {
      return std::isdigit(c) != 0 || std::islower(c) != 0 ||
             allowed.find(static_cast<char>(c)) != std::string_view::npos;
    };
  };
  const std::string_view path = parts.repository;
  const bool good = !path.empty() && !parts.tag.empty() && name.size() <= kImageNameMax && path.front() != '/' &&
                    path.back() != '/' && path.find("//") == std::string_view::npos &&
                    std::ranges::all_of(path, in("._-/:")) &&
                    std::ranges::all_of(parts.tag, in("._-ABCDEFGHIJKLMNOPQRSTUVWXYZ"));
  if (good) return {};
  return invalid("'{}' is no name of an image: small letters, digits, '.', '_', '-' and '/', then perhaps :TAG", name);
}

Result<std::string> image_archive(const ImageSpec& spec) {
  TRY(check_image_name(spec.name));
  const std::string layer = TRY(tar_archive(with_folders(spec.files)));
  const std::string layer_sum = sha256_hex(layer);

  JsonWriter config;
  config.begin_object().field("architecture", kArchitecture).field("os", "linux").field("created", kNoTime);
  config.key("config").begin_object();
  write_array(config, "Env", spec.variables);
  write_array(config, "Cmd", spec.command);
  config.end_object();
  config.key("rootfs").begin_object().field("type", "layers");
  write_array(config, "diff_ids", {"sha256:" + layer_sum});
  config.end_object();
  config.key("history").begin_array().begin_object().field("created", kNoTime);
  config.field("created_by", "pscloud image build").end_object().end_array().end_object();
  const std::string config_name = sha256_hex(config.text()) + ".json";
  const std::string layer_name = layer_sum + "/layer.tar";

  const ImageName parts = split_image_name(spec.name);
  JsonWriter manifest;
  manifest.begin_array().begin_object().field("Config", config_name);
  write_array(manifest, "RepoTags", {fmt::format("{}:{}", parts.repository, parts.tag)});
  write_array(manifest, "Layers", {layer_name});
  manifest.end_object().end_array();
  return tar_archive({{config_name, config.text()}, {layer_name, layer}, {"manifest.json", manifest.text()}});
}

Result<ImageSpec> own_image(const std::string& name) {
  ImageSpec spec;
  spec.name = name;
  spec.variables = {"PATH=/usr/bin"};
  spec.command = {"pscloud", "--help"};
  const Bundle bundle = TRY(own_bundle());
  for (const Bundle::File& file : bundle.files) {
    // The loader is where the program says that it is; libraries are where any loader looks without being told.
    std::string place = "lib/" + file.name;
    if (file.name == bundle.loader) place = TRY(elf_loader(TRY(read_library(own_binary())))).substr(1);
    if (file.path == own_binary()) place = "usr/bin/pscloud";
    spec.files.push_back({place, without_debugging(TRY(read_library(file.path))), 0755});
  }
  spec.files.push_back({std::string(kAuthorities).substr(1), TRY(read_library(kAuthorities))});
  spec.files.push_back({"etc/nsswitch.conf", "hosts: files dns\n"});
  spec.files.push_back({"etc/passwd", "root:x:0:0:root:/root:\nnobody:x:65534:65534:nobody:/nonexistent:\n"});
  spec.files.push_back({"root/", "", 0700});
  spec.files.push_back({"tmp/", "", 01777});
  return spec;
}

}  // namespace pscloud

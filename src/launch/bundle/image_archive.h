#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/bundle/tar_archive.h"
#include "pscloud/error.h"

namespace pscloud {

struct ImageSpec {
  std::string name;            // "pscloud:0.1"
  std::vector<TarFile> files;  // folders above them are made
  std::vector<std::string> variables;
  std::vector<std::string> command;  // if the user says none
};

// An image of one layer in the form that `docker load` takes (docker-archive, image specification v1.2). The same files
// give the same bytes: nothing in it tells when or where it was made.
Result<std::string> image_archive(const ImageSpec& spec);

// The image of pscloud itself, from scratch: the files of own_bundle() without what only debuggers read, the system's
// authorities for https, and nothing else. kNotFound if one of them cannot be read.
Result<ImageSpec> own_image(const std::string& name);

// "registry.example:5000/team/pscloud:1" in its parts.
struct ImageName {
  std::string repository;  // with the registry
  std::string tag;         // "latest" if the name has none
  std::string registry;    // empty: Docker Hub
};
ImageName split_image_name(std::string_view name);
// kInvalid says what a name looks like.
Result<> check_image_name(std::string_view name);

}  // namespace pscloud

#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/file_store.h"

namespace pscloud {

// The files that patterns name: a folder, then '/' and a regular expression (ECMAScript's) that the whole of a file's
// name must match: "data/train/part.*". Without a '/' the folder is the current one. In order, each once.
// A name without special characters is not looked for in a list, which some stores do not have; of web servers, which
// have none, every name stands for itself. So does one that matches nothing but is the name of a file: "a+b".
// kNotFound if one of the patterns matches none; it says what is there instead.
Result<std::vector<FileInfo>> find_files(FileStore& store, std::span<const std::string> patterns);

// Whether a name has special characters, or else stands for itself, as those of web servers always do.
bool is_file_pattern(const std::string& text);

}  // namespace pscloud

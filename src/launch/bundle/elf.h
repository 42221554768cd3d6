#pragma once

#include <string>

#include "pscloud/error.h"

namespace pscloud {

// A program or library (ELF, 64 bits) without what only debuggers read: what is behind its last segment. Most of a
// program of ours is that. As it was if it is nothing of the kind.
std::string without_debugging(std::string elf);

// The path of the loader that a program asks for, "/lib64/ld-linux-x86-64.so.2". kInvalid if it asks for none.
Result<std::string> elf_loader(const std::string& elf);

}  // namespace pscloud

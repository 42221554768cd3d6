#include "launch/bundle/elf.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace pscloud {
namespace {

// The head and the segments of a file of ours; nothing if it is another.
struct ElfParts {
  Elf64_Ehdr head;
  std::vector<Elf64_Phdr> segments;
};

std::optional<ElfParts> elf_parts(std::string_view elf) {
  ElfParts parts{};
  if (elf.size() < sizeof parts.head || !elf.starts_with(ELFMAG) || elf[EI_CLASS] != ELFCLASS64) return {};
  std::memcpy(&parts.head, elf.data(), sizeof parts.head);
  if (parts.head.e_phentsize != sizeof(Elf64_Phdr) || parts.head.e_phoff > elf.size() ||
      parts.head.e_phnum > (elf.size() - parts.head.e_phoff) / sizeof(Elf64_Phdr)) {
    return {};
  }
  parts.segments.resize(parts.head.e_phnum);
  std::memcpy(parts.segments.data(), elf.data() + parts.head.e_phoff, parts.segments.size() * sizeof(Elf64_Phdr));
  for (const Elf64_Phdr& segment : parts.segments) {
    if (segment.p_offset > elf.size() || segment.p_filesz > elf.size() - segment.p_offset) return {};
  }
  return parts;
}

}  // namespace

std::string without_debugging(std::string elf) {
  auto parts = elf_parts(elf);
  if (!parts) return elf;
  size_t end = parts->head.e_phoff + parts->segments.size() * sizeof(Elf64_Phdr);
  for (const Elf64_Phdr& segment : parts->segments) end = std::max(end, segment.p_offset + segment.p_filesz);
  // The table of sections is for linkers and debuggers, and is gone too.
  parts->head.e_shoff = parts->head.e_shnum = parts->head.e_shstrndx = 0;
  std::memcpy(elf.data(), &parts->head, sizeof parts->head);
  elf.resize(end);
  return elf;
}

Result<std::string> elf_loader(const std::string& elf) {
  const auto parts = elf_parts(elf);
  if (!parts) return invalid("this program is no ELF file");
  for (const Elf64_Phdr& segment : parts->segments) {
    if (segment.p_type == PT_INTERP) return std::string(elf.c_str() + segment.p_offset);
  }
  return invalid("this program asks for no loader");
}

}  // namespace pscloud

#include "base/fd.h"

#include <unistd.h>

#include <cctype>
#include <system_error>

namespace pscloud {

Fd& Fd::operator=(Fd&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

Fd::~Fd() {
  if (number_ >= 0) close(number_);
}

std::string errno_text(int number) {
  std::string text = std::generic_category().message(number);
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

}  // namespace pscloud

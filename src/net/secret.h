#pragma once

#include <string>
#include <string_view>

namespace pscloud {

// 256 bits of chance that nobody can guess, as 64 hexadecimal digits.
std::string make_secret();

// Takes as long wherever they differ: time tells nobody how much of a guess was right.
bool is_secret(std::string_view text, std::string_view secret);

}  // namespace pscloud

#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace pscloud {

// How many letters must be put in, left out, replaced or swapped with their neighbour to get from one to the other.
size_t edit_distance(std::string_view a, std::string_view b);

// The known word that was probably meant by `word`; empty if none is near.
std::string suggest(std::string_view word, std::span<const std::string> known);

}  // namespace pscloud

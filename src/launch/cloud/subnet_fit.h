#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pscloud/error.h"

namespace pscloud {

// A block of IPv4 addresses, "172.31.16.0/20".
struct AddressBlock {
  uint32_t first = 0;
  int prefix = 32;

  uint64_t size() const { return uint64_t{1} << (32 - prefix); }
  uint64_t end() const { return first + size(); }
  bool overlaps(const AddressBlock& other) const { return first < other.end() && other.first < end(); }
  std::string text() const;
};
// kInvalid if it is none, or if the address has bits behind the prefix.
Result<AddressBlock> parse_address_block(std::string_view text);

// The prefix of the smallest subnet for so many machines: ten addresses more, of which AWS keeps five. Never smaller
// than /28, AWS's smallest.
Result<int> subnet_prefix(int machines);

// The first block for so many machines in the network `vpc` that overlaps none that is taken. kInvalid if there is
// none.
Result<AddressBlock> fit_subnet(const AddressBlock& vpc, const std::vector<AddressBlock>& taken, int machines);

}  // namespace pscloud

#include "launch/cloud/subnet_fit.h"

#include <algorithm>
#include <bit>

#include "base/text.h"

namespace pscloud {
namespace {

constexpr int kSpareAddresses = 10;
constexpr int kPrefixMin = 16;  // AWS's largest subnet

}  // namespace

std::string AddressBlock::text() const {
  return fmt::format("{}.{}.{}.{}/{}", first >> 24, first >> 16 & 255, first >> 8 & 255, first & 255, prefix);
}

Result<AddressBlock> parse_address_block(std::string_view text) {
  const std::string_view whole = text;
  AddressBlock block;
  const size_t slash = text.find('/');
  bool good = slash != std::string_view::npos && parse_number(text.substr(slash + 1), 0, 32, block.prefix);
  text = text.substr(0, slash);
  for (int part = 0; part < 4 && good; ++part) {
    const std::string_view digits = text.substr(0, text.find('.'));
    uint32_t number = 0;
    good = parse_number(digits, uint32_t{0}, uint32_t{255}, number) && (part == 3) == (digits.size() == text.size());
    text.remove_prefix(std::min(digits.size() + 1, text.size()));
    block.first = block.first << 8 | number;
  }
  if (!good || block.first % block.size() != 0) return invalid("'{}' is no block of addresses", whole);
  return block;
}

Result<int> subnet_prefix(int machines) {
  const int prefix = 32 - std::bit_width(static_cast<uint32_t>(machines + kSpareAddresses - 1));
  if (prefix < kPrefixMin) return invalid("{} machines are too many for one subnet", machines);
  return prefix;
}

Result<AddressBlock> fit_subnet(const AddressBlock& vpc, const std::vector<AddressBlock>& taken, int machines) {
  AddressBlock block{.first = vpc.first, .prefix = TRY(subnet_prefix(machines))};
  for (uint64_t first = vpc.first; first + block.size() <= vpc.end(); first += block.size()) {
    block.first = static_cast<uint32_t>(first);
    if (std::ranges::none_of(taken, [&](const AddressBlock& each) { return each.overlaps(block); })) return block;
  }
  return invalid("the network {} has no room for a subnet of {} machines (a /{}); name one of yours with --subnet",
                 vpc.text(), machines, block.prefix);
}

}  // namespace pscloud

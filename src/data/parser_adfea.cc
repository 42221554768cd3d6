#include <fmt/core.h>

#include "data/parser_makers.h"

namespace pscloud {
namespace {

// line_id 1 label key:group key:group ...
class AdfeaParser final : public Parser {
 public:
  explicit AdfeaParser(bool ignore_groups) : ignore_groups_(ignore_groups) {}

 private:
  Complaint parse_line(const char* at, const char* end, RowBlock& block) override {
    for (int skipped = 0; skipped < 2; ++skipped) {
      while (at < end && !is_blank(*at)) ++at;
      at = skip_blanks(at, end);
    }
    float label = 0;
    const char* rest = at < end ? scan_word(at, end, label) : nullptr;
    if (rest == nullptr) return {at, "the third word must be the label, a number"};
    for (at = skip_blanks(rest, end); at < end; at = skip_blanks(rest, end)) {
      Key key = 0;
      uint64_t group = 0;
      rest = scan_u64(at, key);
      if (rest == nullptr) return no_key(at);
      if (rest >= end || *rest != ':') return {rest, "a key without ':' and a group"};
      const char* const group_at = rest + 1;
      rest = scan_u64(group_at, group);
      if (rest == nullptr || group >= kGroupsMax)
        return {group_at, fmt::format("a group must be below {}", kGroupsMax)};
      if (rest < end && !is_blank(*rest)) return {rest, "features must be apart"};
      block.keys.push_back(key);
      if (!ignore_groups_) block.groups.push_back(static_cast<uint16_t>(group));
    }
    block.end_row(label > 0 ? 1.0f : -1.0f);
    return {};
  }

  const bool ignore_groups_;
};

}  // namespace

std::unique_ptr<Parser> make_adfea_parser(bool ignore_groups) { return std::make_unique<AdfeaParser>(ignore_groups); }

}  // namespace pscloud

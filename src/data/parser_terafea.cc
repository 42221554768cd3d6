#include "data/parser_makers.h"

namespace pscloud {
namespace {

// label line_id | key key ...     The first ten bits of a key are its group.
class TerafeaParser final : public Parser {
 public:
  explicit TerafeaParser(bool ignore_groups) : ignore_groups_(ignore_groups) {}

 private:
  Complaint parse_line(const char* at, const char* end, RowBlock& block) override {
    float label = 0;
    const char* rest = scan_word(at, end, label);
    if (rest == nullptr) return {at, "the label is no number"};
    at = rest;
    while (at < end && *at != '|') ++at;
    if (at >= end) return {end, "no '|' before the keys"};
    for (at = skip_blanks(at + 1, end); at < end; at = skip_blanks(rest, end)) {
      Key key = 0;
      rest = scan_u64(at, key);
      if (rest == nullptr) return no_key(at);
      if (rest < end && !is_blank(*rest)) return {rest, "keys must be apart"};
      block.keys.push_back(key);
      if (!ignore_groups_) block.groups.push_back(static_cast<uint16_t>(key >> 54));
    }
    block.end_row(label > 0 ? 1.0f : -1.0f);
    return {};
  }

  const bool ignore_groups_;
};

}  // namespace

std::unique_ptr<Parser> make_terafea_parser(bool ignore_groups) {
  return std::make_unique<TerafeaParser>(ignore_groups);
}

}  // namespace pscloud

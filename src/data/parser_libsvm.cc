#include <fmt/core.h>

#include "data/parser_makers.h"

namespace pscloud {
namespace {

// label key:value key:value ... # comment
class LibsvmParser final : public Parser {
 private:
  Complaint parse_line(const char* at, const char* end, RowBlock& block) override {
    float label = 0;
    const char* rest = scan_word(at, end, label);
    if (rest == nullptr) return {at, "the label is no number"};
    for (at = skip_blanks(rest, end); at < end && *at != '#'; at = skip_blanks(rest, end)) {
      Key key = 0;
      rest = scan_u64(at, key);
      if (rest == nullptr) return no_key(at);
      if (rest >= end || *rest != ':') return {rest, "a key without ':' and a value"};
      float value = 0;
      const char* const value_at = rest + 1;
      rest = scan_word(value_at, end, value);
      if (rest == nullptr) return {value_at, fmt::format("the value of key {} is no number", key)};
      block.keys.push_back(key);
      block.values.push_back(value);
    }
    block.end_row(label);
    return {};
  }
};

}  // namespace

std::unique_ptr<Parser> make_libsvm_parser() { return std::make_unique<LibsvmParser>(); }

}  // namespace pscloud

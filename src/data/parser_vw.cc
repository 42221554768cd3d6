#include <fmt/core.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/hash.h"
#include "data/parser_makers.h"

namespace pscloud {
namespace {

constexpr bool ends_word(char c) { return is_blank(c) || c == '|'; }

// label [importance [base]] ['tag]|namespace[:weight] feature[:value] ... |namespace ...
// The key of a feature is a hash of its name and its namespace. Importance, base and tag are passed over; a line
// without a label is for prediction: its label is 0.
class VwParser final : public Parser {
 private:
  Complaint parse_line(const char* at, const char* end, RowBlock& block) override {
    float label = 0;
    const char* const bar = std::find(at, end, '|');
    if (bar == end) return {end, "no '|' before the features"};
    if (at < bar && *at != '\'') {
      const char* const rest = scan_float(at, bar, label);
      if (rest == nullptr || rest > bar || (rest < bar && !is_blank(*rest))) return {at, "the label is no number"};
    }
    for (at = bar; at < end;) {
      ++at;  // behind the bar
      std::string_view space;
      float weight = 1;
      if (at < end && !ends_word(*at)) {
        if (Complaint complaint = parse_word(at, end, space, weight); complaint.at != nullptr) return complaint;
      }
      const uint64_t seed = space.empty() ? 0 : hash64(bytes_of(space));
      for (at = skip_blanks(at, end); at < end && *at != '|'; at = skip_blanks(at, end)) {
        std::string_view name;
        float value = 1;
        if (Complaint complaint = parse_word(at, end, name, value); complaint.at != nullptr) return complaint;
        block.keys.push_back(mix_key(hash64(bytes_of(name)) + seed));
        block.values.push_back(value * weight);
      }
    }
    block.end_row(label);
    return {};
  }

  // name or name:number; goes behind it.
  static Complaint parse_word(const char*& at, const char* end, std::string_view& name, float& number) {
    const char* const first = at;
    while (at < end && !ends_word(*at) && *at != ':') ++at;
    name = {first, static_cast<size_t>(at - first)};
    if (at >= end || *at != ':') return {};
    const char* const number_at = ++at;
    const char* const rest = scan_float(number_at, end, number);
    if (rest == nullptr || rest > end || (rest < end && !ends_word(*rest))) {
      return {number_at, fmt::format("what follows '{}:' is no number", name)};
    }
    at = rest;
    return {};
  }
};

}  // namespace

std::unique_ptr<Parser> make_vw_parser() { return std::make_unique<VwParser>(); }

}  // namespace pscloud

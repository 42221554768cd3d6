#include <fmt/core.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/hash.h"
#include "data/parser_makers.h"

namespace pscloud {
namespace {

constexpr bool ends_word(char c) { return is_blank(c) || c == '|'; }

// label [importance [base]] ['tag]|namespace[:weight] feature[:value] ... |namespace ...
// The key of a feature is a hash of its name and its namespace. The tag is passed over: it begins with ' or touches the
// bar. A line without a label is for prediction: its label is 0. An importance that is not 1, or a base that is not 0,
// would change what is learned, and there is no place for them.
class VwParser final : public Parser {
  Complaint parse_line(const char* at, const char* end, RowBlock& block) override {
    float label = 0;
    const char* const bar = std::find(at, end, '|');
    if (bar == end) return {end, "no '|' before the features"};
    const char* const rest = at < bar && *at != '\'' ? scan_float(at, bar, label) : nullptr;
    const bool has_label = rest != nullptr && rest <= bar && (rest == bar || is_blank(*rest));
    if (has_label) {
      if (Complaint complaint = check_extras(rest, bar); complaint.at != nullptr) return complaint;
    } else {
      const bool is_tag = at == bar || *at == '\'' || std::find_if(at, bar, is_blank) == bar;
      if (!is_tag) return {at, "the label is no number"};
      if (labels_ == Labels::kNeeded) return {at, "no label"};
      label = 0;
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

  // What stands between the label and the bar.
  static Complaint check_extras(const char* at, const char* bar) {
    for (const float usual : {1.0f, 0.0f}) {
      at = skip_blanks(at, bar);
      const char* const end = std::find_if(at, bar, is_blank);
      if (end == bar || *at == '\'') return {};  // the tag, or nothing
      float number = 0;
      if (scan_word(at, bar, number) == nullptr) return {at, "what follows the label is no number"};
      if (number != usual && usual == 1) {
        return {at, fmt::format("an importance of {:g}: there are none here but 1", number)};
      }
      if (number != usual) return {at, fmt::format("a base of {:g}: there is none here but 0", number)};
      at = end;
    }
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

#include <fmt/core.h>

#include "data/parser_makers.h"

namespace pscloud {
namespace {

// label; group key:value key:value ...; group ...;   (SPARSE)
// label; group key key ...; group ...;               (SPARSE_BINARY)
// label; group value value ...; group ...;           (DENSE: the key is group * 2^32 + place)
class GroupedParser final : public Parser {
 public:
  GroupedParser(ExampleFormat format, bool ignore_groups) : format_(format), ignore_groups_(ignore_groups) {}

 private:
  Complaint parse_line(const char* at, const char* end, RowBlock& block) override {
    float label = 0;
    const char* rest = scan_float(at, end, label);
    if (rest == nullptr || rest > end) return {at, "the label is no number"};
    at = skip_blanks(rest, end);
    if (at < end && *at != ';') return {at, "the label must be followed by ';'"};
    while (at < end) {
      at = skip_blanks(at + 1, end);  // behind the ';'
      if (at >= end) break;
      uint64_t group = 0;
      rest = scan_u64(at, group);
      if (rest == nullptr || group >= kGroupsMax) return {at, fmt::format("a group must be below {}", kGroupsMax)};
      at = skip_blanks(rest, end);
      for (uint64_t place = 0; at < end && *at != ';'; ++place) {
        Complaint complaint = parse_feature(at, end, group, place, block);
        if (complaint.at != nullptr) return complaint;
        at = skip_blanks(at, end);
      }
    }
    block.end_row(label > 0 ? 1.0f : -1.0f);
    return {};
  }

  // Goes behind it.
  Complaint parse_feature(const char*& at, const char* end, uint64_t group, uint64_t place, RowBlock& block) const {
    Key key = group << 32 | place;
    float value = 1;
    const char* rest = at;
    if (format_ != ExampleFormat::kDense) {
      rest = scan_u64(at, key);
      if (rest == nullptr) return no_key(at);
      if (format_ == ExampleFormat::kSparse) {
        if (rest >= end || *rest != ':') return {rest, "a key without ':' and a value"};
        ++rest;
      }
    }
    if (format_ != ExampleFormat::kSparseBinary) {
      const char* const value_at = rest;
      rest = scan_float(value_at, end, value);
      if (rest == nullptr || rest > end) return {value_at, "a value is no number"};
    }
    if (rest < end && !is_blank(*rest) && *rest != ';') return {rest, "features must be apart"};
    block.keys.push_back(key);
    if (format_ != ExampleFormat::kSparseBinary) block.values.push_back(value);
    if (!ignore_groups_) block.groups.push_back(static_cast<uint16_t>(group));
    at = rest;
    return {};
  }

  const ExampleFormat format_;
  const bool ignore_groups_;
};

}  // namespace

std::unique_ptr<Parser> make_grouped_parser(ExampleFormat format, bool ignore_groups) {
  return std::make_unique<GroupedParser>(format, ignore_groups);
}

}  // namespace pscloud

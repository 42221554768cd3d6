#include <fmt/core.h>

#include <charconv>

#include "data/murmur3.h"
#include "data/parser_makers.h"

namespace pscloud {
namespace {

constexpr uint64_t kCounts = 13;
constexpr uint64_t kColumns = 39;
constexpr uint64_t kSeed = 512927377;
constexpr size_t kCategoryBytesMin = 5;

// label TAB 13 counts TAB 26 categories; any but the label may be empty. The keys are those of dmlc's parameter server:
// of a count its column's part of all keys plus the count, of a category its hash. An empty count gives no feature;
// there it was taken for 0.
class CriteoParser final : public Parser {
 public:
  explicit CriteoParser(bool ignore_groups) : ignore_groups_(ignore_groups) {}

 private:
  Complaint parse_line(const char* at, const char* end, RowBlock& block) override {
    float label = 0;
    const char* rest = scan_float(at, end, label);
    if (rest == nullptr || rest > end || (rest < end && *rest != '\t')) return {at, "the label is no number"};
    at = rest;
    for (uint64_t column = 0; column < kColumns; ++column) {
      if (at >= end) return {end, fmt::format("{} columns behind the label instead of {}", column, kColumns)};
      const char* const first = ++at;  // behind the tab
      while (at < end && *at != '\t') ++at;
      if (column < kCounts) {
        if (first == at) continue;
        int32_t count = 0;
        const auto [last, error] = std::from_chars(first, at, count);
        if (error != std::errc() || last != at) return {first, "a count is no whole number"};
        add(UINT64_MAX / kCounts * column + static_cast<uint64_t>(int64_t{count}), column, block);
      } else if (const std::string_view text(first, static_cast<size_t>(at - first));
                 text.size() >= kCategoryBytesMin) {
        add(murmur3(text, kSeed), column, block);
      }
    }
    if (at < end && at + 1 < end) return {at, fmt::format("more than {} columns behind the label", kColumns)};
    block.end_row(label > 0 ? 1.0f : -1.0f);
    return {};
  }

  void add(Key key, uint64_t column, RowBlock& block) const {
    block.keys.push_back(key);
    if (!ignore_groups_) block.groups.push_back(static_cast<uint16_t>(column + 1));
  }

  const bool ignore_groups_;
};

}  // namespace

std::unique_ptr<Parser> make_criteo_parser(bool ignore_groups) { return std::make_unique<CriteoParser>(ignore_groups); }

}  // namespace pscloud

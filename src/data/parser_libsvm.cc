#include <fmt/core.h>

#include <array>

#include "data/parser_makers.h"

namespace pscloud {
namespace {

// Features on their way to a block, which takes many at once for the price of one.
class FeatureBuffer {
 public:
  explicit FeatureBuffer(RowBlock& block) : block_(block) {}

  void add(Key key, float value) {
    if (size_ == kMost) flush();
    keys_[size_] = key;
    values_[size_++] = value;
  }
  void flush() {
    block_.keys.insert(block_.keys.end(), keys_.begin(), keys_.begin() + size_);
    block_.values.insert(block_.values.end(), values_.begin(), values_.begin() + size_);
    size_ = 0;
  }

 private:
  static constexpr size_t kMost = 128;
  RowBlock& block_;
  size_t size_ = 0;
  std::array<Key, kMost> keys_;
  std::array<float, kMost> values_;
};

// label key:value key:value ... # comment
class LibsvmParser final : public Parser {
 private:
  Complaint parse_line(const char* at, const char* end, RowBlock& block) override {
    float label = 0;
    const char* rest = scan_word(at, end, label);
    if (rest == nullptr) return {at, "the label is no number"};
    FeatureBuffer features(block);
    for (at = skip_blanks(rest, end); at < end && *at != '#'; at = skip_blanks(rest, end)) {
      Key key = 0;
      rest = scan_u64(at, key);
      if (rest == nullptr) return no_key(at);
      if (rest >= end || *rest != ':') return {rest, "a key without ':' and a value"};
      float value = 0;
      const char* const value_at = rest + 1;
      rest = scan_short_float(value_at, value);
      if (rest == nullptr || rest > end || (rest < end && !is_blank(*rest))) {
        rest = scan_word(value_at, end, value);
        if (rest == nullptr) return {value_at, fmt::format("the value of key {} is no number", key)};
      }
      features.add(key, value);
    }
    features.flush();
    block.end_row(label);
    return {};
  }
};

}  // namespace

std::unique_ptr<Parser> make_libsvm_parser() { return std::make_unique<LibsvmParser>(); }

}  // namespace pscloud

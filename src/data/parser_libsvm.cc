#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "base/vector_clones.h"
#include "data/parser_makers.h"

namespace pscloud {
namespace {

// Features as nearly all texts have them: " key:value key:value", numbers that are short and have no sign. First it
// finds where the numbers end, for a processor cannot begin with a number before it knows where that stands. False,
// and nothing has changed, if there is anything else.
PSCLOUD_VECTOR_CLONES
bool parse_plain(const char* line, const char* end, std::vector<uint32_t>& separators, RowBlock& block) {
  const auto length = static_cast<size_t>(end - line);
  if (separators.size() < length + 64) separators.resize(length + 64);
  uint32_t* last = separators.data();
  for (size_t begin = 0; begin < length; begin += 64) {
    uint64_t here = separators_in_64(line + begin);
    if (length - begin < 64) here &= (uint64_t{1} << (length - begin)) - 1;
    for (; here != 0; here &= here - 1) *last++ = static_cast<uint32_t>(begin + std::countr_zero(here));
  }
  const auto count = static_cast<size_t>(last - separators.data());
  if (count % 2 != 0) return false;
  *last = static_cast<uint32_t>(length);

  const size_t features = count / 2;
  const size_t first = block.keys.size();
  block.keys.resize(first + features);
  block.values.resize(first + features);
  Key* const keys = block.keys.data() + first;
  float* const values = block.values.data() + first;
  bool plain = true;
  for (size_t i = 0; i < features; ++i) {
    const uint32_t blank = separators[2 * i];
    const uint32_t colon = separators[2 * i + 1];
    const size_t key_size = colon - blank - 1;
    const size_t value_size = separators[2 * i + 2] - colon - 1;
    plain &= line[blank] == ' ' && line[colon] == ':';
    plain &= key_size - 1 < 16 && value_size - 1 < 7;  // and neither is 0
    if (!plain) break;
    const char* const key_at = line + blank + 1;
    const uint64_t head = values_of(load_eight(key_at), std::min<size_t>(key_size, 8));
    plain &= all_digits(head);
    keys[i] = joined(head);
    if (key_size > 8) {
      const uint64_t tail = values_of(load_eight(key_at + 8), key_size - 8);
      plain &= all_digits(tail);
      keys[i] = keys[i] * kPowersOfTen[key_size - 8] + joined(tail);
    }
    const char* const value_at = line + colon + 1;
    if (value_size == 1) {  // most often 1
      plain &= is_digit(*value_at);
      values[i] = static_cast<float>(*value_at - '0');
    } else {
      plain &= short_float_of(load_eight(value_at), value_size, values[i]);
    }
  }
  if (plain) return true;
  block.keys.resize(first);
  block.values.resize(first);
  return false;
}

// label key:value key:value ... # comment
class LibsvmParser final : public Parser {
 private:
  Complaint parse_line(const char* at, const char* end, RowBlock& block) override {
    float label = 0;
    const char* rest = scan_word(at, end, label);
    if (rest == nullptr) return {at, "the label is no number"};
    if (!parse_plain(rest, end, separators_, block)) {
      Complaint complaint = parse_any(rest, end, block);
      if (complaint.at != nullptr) return complaint;
    }
    block.end_row(label);
    return {};
  }

  static Complaint parse_any(const char* rest, const char* end, RowBlock& block) {
    for (const char* at = skip_blanks(rest, end); at < end && *at != '#'; at = skip_blanks(rest, end)) {
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
    return {};
  }

  std::vector<uint32_t> separators_;  // of a line: where they stand in it
};

}  // namespace

std::unique_ptr<Parser> make_libsvm_parser() { return std::make_unique<LibsvmParser>(); }

}  // namespace pscloud

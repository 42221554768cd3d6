#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "base/vector_clones.h"
#include "data/parser_makers.h"

namespace pscloud {
namespace {

constexpr size_t kPieceBytes = 16 << 10;  // it and what is made of it stay in the nearest cache

// Where the characters stand in `text` that are neither digits nor points. Returns the end of what it wrote, behind
// which it may have written as many as kScanPadding.
PSCLOUD_VECTOR_CLONES
uint32_t* find_separators(const char* text, size_t size, uint32_t* to) {
  constexpr size_t kBlock = 64;
  static_assert(kBlock <= kScanPadding);
  constexpr int kUsual = 20;  // as many of a block, or less, in most texts
  for (size_t begin = 0; begin < size; begin += kBlock) {
    uint64_t here = separators_in_64(text + begin);
    if (size - begin < kBlock) here &= (uint64_t{1} << (size - begin)) - 1;
    uint32_t* const next = to + std::popcount(here);
    // Written whether they are there or not: how many there are cannot be predicted.
    for (int i = 0; i < kUsual; ++i, here &= here - 1) to[i] = static_cast<uint32_t>(begin + std::countr_zero(here));
    for (to += kUsual; here != 0; here &= here - 1) *to++ = static_cast<uint32_t>(begin + std::countr_zero(here));
    to = next;
  }
  return to;
}

// What plain lines have: of each feature the digits of its key, not yet a number, and its value.
struct PlainFeatures {
  std::vector<uint64_t> digits;  // the first eight of a key, and what may follow them
  std::vector<uint64_t> shifts;  // that push out what follows
  std::vector<float> values;
  struct Long {
    size_t feature;
    uint64_t factor;
    uint64_t rest;
  };
  std::vector<Long> longs;  // keys of more than eight digits

  // Memory for so many.
  void reserve(size_t features) {
    if (values.size() >= features) return;
    digits.resize(features);
    shifts.resize(features);
    values.resize(features);
  }
};

// How far we are in the separators of a text, the last of which ends a line.
struct PlainLines {
  const uint32_t* next;
  const uint32_t* last;
  uint32_t line = 0;  // where the next one begins
  size_t features = 0;
};

// Features as nearly all texts have them: " key:value key:value", numbers that are short and have no sign. Where the
// numbers end is known: before that a processor could not begin with the next. False if there is anything else.
[[gnu::always_inline]] inline bool parse_plain_features(const char* text, PlainLines& lines, PlainFeatures& found) {
  const uint32_t* at = lines.next;
  size_t feature = lines.features;
  uint64_t* const digits = found.digits.data();
  uint64_t* const shifts = found.shifts.data();
  float* const values = found.values.data();
  for (; text[at[0]] == ' '; at += 2, ++feature) {
    const char* const key_at = text + at[0] + 1;
    const char* const colon = text + at[1];
    const char* const value_at = colon + 1;
    const auto key_size = static_cast<size_t>(colon - key_at);
    const auto value_size = static_cast<size_t>(text + at[2] - value_at);
    if (*colon != ':') break;
    if (key_size - 1 >= 16 || value_size - 1 >= 7) return false;  // nor is one of them 0
    digits[feature] = load_eight(key_at);
    shifts[feature] = 64 - 8 * std::min<size_t>(key_size, 8);
    if (key_size > 8) {
      const uint64_t tail = values_of(load_eight(key_at + 8), key_size - 8);
      if (!all_digits(tail)) return false;
      found.longs.push_back({feature, kPowersOfTen[key_size - 8], joined(tail)});
    }
    if (value_size == 1) {  // most often 1
      const auto digit = static_cast<uint8_t>(*value_at - '0');
      if (digit > 9) return false;
      values[feature] = digit;
    } else if (const uint64_t eight = load_eight(value_at); !tiny_float_of(eight, value_size, values[feature]) &&
                                                            !short_float_of(eight, value_size, values[feature])) {
      return false;
    }
  }
  for (const char blank : {' ', '\r'}) at += text[at[0]] == blank && at[1] == at[0] + 1;
  if (text[at[0]] != '\n') return false;
  lines = {at + 1, lines.last, at[0] + 1, feature};
  return true;
}

// As many lines as are plain, with the labels that these have. Keys are still text.
PSCLOUD_VECTOR_CLONES
void parse_plain_lines(const char* text, PlainLines& lines, PlainFeatures& found, RowBlock& block) {
  const size_t before = block.keys.size();
  while (lines.next != lines.last) {
    PlainLines next = lines;
    const bool negative = text[lines.line] == '-';
    const bool sign = negative || text[lines.line] == '+';
    next.next += sign;
    const uint32_t label_at = lines.line + sign;
    const size_t label_size = *next.next - label_at;
    float label = 0;
    if (label_size - 1 >= 7 || !short_float_of(load_eight(text + label_at), label_size, label)) return;
    if (!parse_plain_features(text, next, found)) return;
    lines = next;
    block.labels.push_back(negative ? -label : label);
    block.ends.push_back(before + lines.features);
  }
}

// The numbers that digits write, several at a time. False if there are points among them.
PSCLOUD_VECTOR_CLONES
bool join_digits(const uint64_t* __restrict digits, const uint64_t* __restrict shifts, size_t count,
                 Key* __restrict keys) {
  uint64_t seen = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t values = (digits[i] - 0x3030303030303030) << shifts[i];
    seen |= values;
    keys[i] = joined(values);
  }
  return all_digits(seen);
}

// label key:value key:value ... # comment
class LibsvmParser final : public Parser {
 public:
  void parse(std::string_view text, RowBlock& block, BadLines& bad) override {
    size_t at = 0;
    for (size_t piece = kPieceBytes; at < text.size();) {
      const size_t used = parse_piece(text, at, std::min(piece, text.size() - at), block, bad);
      at += used;
      piece = used > 0 ? kPieceBytes : 2 * piece;  // it has not been one line
    }
  }

 private:
  // Returns how many bytes of `text`, from `at` on, have been used: whole lines, 0 if these are not even one.
  size_t parse_piece(std::string_view text, size_t at, size_t size, RowBlock& block, BadLines& bad) {
    const char* const piece = text.data() + at;
    if (separators_.size() < size + kScanPadding) separators_.resize(size + kScanPadding);
    uint32_t* last = find_separators(piece, size, separators_.data());
    while (last != separators_.data() && piece[last[-1]] != '\n') --last;
    if (last == separators_.data()) {
      if (at + size < text.size()) return 0;
      take_line(text, piece, piece + size, block, bad);
      return size;
    }
    last[0] = last[1] = last[-1];  // what is looked at behind a line that is cut short
    PlainLines lines{separators_.data(), last};
    while (lines.next != last) {
      const PlainLines before = lines;
      const bool plain = take_plain_lines(piece, lines, block);
      // If there is a point in a key, it is not worth knowing in which line.
      const uint32_t* const end = plain ? std::min<const uint32_t*>(lines.next + 1, last) : lines.next;
      if (!plain) lines = before;
      while (lines.next < end) {
        while (piece[*lines.next] != '\n') ++lines.next;
        take_line(text, piece + lines.line, piece + *lines.next, block, bad);
        lines.line = *lines.next++ + 1;
      }
    }
    return lines.line;
  }

  // Those that come next, as many as are plain. False, and the block is as before, if some key is none.
  bool take_plain_lines(const char* text, PlainLines& lines, RowBlock& block) {
    lines.features = 0;
    found_.longs.clear();
    found_.reserve(static_cast<size_t>(lines.last - lines.next) / 2);
    const size_t rows = block.rows();
    const size_t features = block.keys.size();
    parse_plain_lines(text, lines, found_, block);
    block.keys.resize(features + lines.features);
    if (!join_digits(found_.digits.data(), found_.shifts.data(), lines.features, block.keys.data() + features)) {
      block.labels.resize(rows);
      block.ends.resize(rows);
      block.keys.resize(features);
      return false;
    }
    for (const auto& [feature, factor, rest] : found_.longs) {
      if (feature >= lines.features) break;  // of a line that was not plain
      Key& key = block.keys[features + feature];
      key = key * factor + rest;
    }
    block.values.insert(block.values.end(), found_.values.data(), found_.values.data() + lines.features);
    return true;
  }

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

  // Of a piece; here to be used again.
  std::vector<uint32_t> separators_;  // where they stand in it
  PlainFeatures found_;
};

}  // namespace

std::unique_ptr<Parser> make_libsvm_parser() { return std::make_unique<LibsvmParser>(); }

}  // namespace pscloud

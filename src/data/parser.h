#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/row_block.h"
#include "data/scan.h"

namespace pscloud {

// How examples are written: all but the last as lines of text.
enum class ExampleFormat { kDense, kSparse, kSparseBinary, kAdfea, kLibsvm, kTerafea, kVw, kCriteo, kProto };

// Examples to learn from have a label. Those that are only scored may be without one, in formats that allow it, and
// keep their places: a bad line is an example without features, whose label is no number (NaN).
enum class Labels { kNeeded, kMayLack };

// Lines that make no sense: how many, and what is wrong with the first of them.
struct BadLines {
  static constexpr size_t kKept = 8;
  struct One {
    uint64_t offset = 0;  // of the place in the text
    std::string reason;
  };
  uint64_t count = 0;
  std::vector<One> first;

  void add(uint64_t offset, std::string reason) {
    ++count;
    if (first.size() < kKept) first.push_back({offset, std::move(reason)});
  }
};

// Makes examples of text, one of each line, or of records.
class Parser {
 public:
  virtual ~Parser() = default;

  // Appends the example of each line of `text` to `block`; empty lines are none. The last line needs no end. Lines that
  // make no sense are left out and told to `bad`. kScanPadding bytes behind `text` must be readable; a line's end or
  // a zero is best.
  virtual void parse(std::string_view text, RowBlock& block, BadLines& bad);

  // Its examples are no lines but records: parse_record() takes each, parse() none.
  virtual bool reads_records() const { return false; }
  void parse_record(std::string_view record, RowBlock& block, BadLines& bad);
  // What takes the place of a bad line or record.
  void end_bad(RowBlock& block) const;

  void set_labels(Labels labels) { labels_ = labels; }

 protected:
  // What is wrong with a line, and where.
  struct Complaint {
    const char* at = nullptr;  // null: nothing
    std::string reason;
  };
  // A number that ends at a blank or at the end; null if there is none.
  static const char* scan_word(const char* at, const char* end, float& value) {
    const char* const rest = scan_float(at, end, value);
    return rest == nullptr || rest > end || (rest < end && !is_blank(*rest)) ? nullptr : rest;
  }
  // Where scan_u64() found no key.
  static Complaint no_key(const char* at) {
    return {at, is_digit(*at) ? "a key above 2^64-1" : "a key must be a whole number"};
  }
  // The line of `text` at `at`, whose end is at `end`, with a '\r' before it or not: its example, or what is wrong.
  void take_line(std::string_view text, const char* at, const char* end, RowBlock& block, BadLines& bad);
  // One line, without its end, or one record: features go to `block`, then its row is ended. Whatever follows `end` is
  // no digit.
  virtual Complaint parse_line(const char* at, const char* end, RowBlock& block) = 0;

  Labels labels_ = Labels::kNeeded;
};

// `ignore_groups`: the features are in no group, whatever the text says.
std::unique_ptr<Parser> make_parser(ExampleFormat format, bool ignore_groups, Labels labels = Labels::kNeeded);

// Counts the rules by which the same bytes come to the same examples. A change of a parser that makes others of some
// bytes must change it: what is kept of examples that were read before is of no use then.
int parser_version(ExampleFormat format);

}  // namespace pscloud

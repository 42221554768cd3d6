#include "learn/model_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <future>
#include <utility>
#include <vector>

#include "base/check.h"
#include "data/scan.h"
#include "data/text_reader.h"

namespace pscloud {
namespace {

constexpr size_t kWriteBytes = 1 << 20;
constexpr size_t kAloneMax = 4096;  // to write so many lines takes less time than to begin a thread

bool is_line_end(char c) { return c == '\n' || c == '\r'; }

// A blank, and a number after it. Returns where it ends; null if there is none.
const char* scan_next_float(const char* at, const char* end, float& number) {
  if (at == end || !is_blank(*at)) return nullptr;
  at = scan_float(skip_blanks(at, end), end, number);
  const bool whole = at != nullptr && at <= end && (at == end || is_blank(*at) || is_line_end(*at));
  return whole && !std::isnan(number) ? at : nullptr;
}

// Lines of a model, as arrays.
struct ModelLines {
  std::vector<Key> keys;
  std::vector<float> weights;
  size_t dim = 0;  // 0: nothing has been embedded yet
  std::vector<uint32_t> places;
  std::vector<float> embeddings;

  // Empty, but for `dim`.
  void clear() {
    keys.clear();
    weights.clear();
    places.clear();
    embeddings.clear();
  }

  // Adds the line that begins at `at`. Returns where it ends; null if it is none.
  const char* scan_line(const char* at, const char* end) {
    Key key = 0;
    float number = 0;
    at = scan_u64(at, key);
    if (at == nullptr || at > end) return nullptr;
    at = scan_next_float(at, end, number);
    if (at == nullptr) return nullptr;
    keys.push_back(key);
    weights.push_back(number);
    const size_t before = embeddings.size();
    while (true) {
      const char* const next = skip_blanks(at, end);
      if (next == end || is_line_end(*next)) break;
      at = scan_next_float(at, end, number);
      if (at == nullptr) return nullptr;
      embeddings.push_back(number);
    }
    const size_t length = embeddings.size() - before;
    places.push_back(length == 0 ? Embeddings::kNone : static_cast<uint32_t>(before / length));
    if (length == 0 || length == dim) return at;
    if (dim != 0) return nullptr;
    dim = length;
    return at;
  }
};

// Text on its way to a string: that looks at its room with every character, this once in a while.
class LineRoom {
 public:
  explicit LineRoom(std::string& text) : text_(text) {}
  ~LineRoom() { text_.append(room_.data(), at_); }

  // A number and what follows it.
  template <class Number>
  void add(Number number, char then) {
    if (room_.end() - at_ < kNumberBytesMax) text_.append(room_.data(), std::exchange(at_, room_.data()));
    at_ = std::to_chars(at_, room_.end(), number).ptr;
    *at_++ = then;
  }
  void replace_last(char c) { at_[-1] = c; }

 private:
  static constexpr ptrdiff_t kNumberBytesMax = 32;

  std::string& text_;
  std::array<char, 8 << 10> room_;
  char* at_ = room_.data();
};

// Appends the lines of keys `begin` to `end`; returns how many of their weights are not zero.
uint64_t append_lines(std::span<const Key> keys, std::span<const float> weights, const Embeddings& embeddings,
                      size_t begin, size_t end, std::string& text) {
  LineRoom room(text);
  uint64_t nonzero = 0;
  for (size_t i = begin; i < end; ++i) {
    const std::span<const float> embedding = embeddings.of(i);
    if (weights[i] == 0 && embedding.empty()) continue;
    room.add(keys[i], '\t');
    room.add(weights[i], '\t');
    for (const float number : embedding) room.add(number, '\t');
    room.replace_last('\n');
    nonzero += weights[i] != 0;
  }
  return nonzero;
}

}  // namespace

Result<> ModelTextWriter::write(std::span<const Key> keys, std::span<const float> weights,
                                const Embeddings& embeddings) {
  CHECK(keys.size() == weights.size(), "{} keys, {} weights", keys.size(), weights.size());
  CHECK(embeddings.places.empty() || embeddings.places.size() == keys.size(), "{} keys, {} places", keys.size(),
        embeddings.places.size());
  // Nearly all the time goes into numbers: two threads share it.
  const size_t half = keys.size() > kAloneMax ? keys.size() / 2 : keys.size();
  std::future<uint64_t> rest;
  if (half < keys.size()) {
    rest = std::async(std::launch::async,
                      [&] { return append_lines(keys, weights, embeddings, half, keys.size(), second_half_); });
  }
  weights_ += append_lines(keys, weights, embeddings, 0, half, text_);
  if (rest.valid()) {
    weights_ += rest.get();
    text_ += second_half_;
    second_half_.clear();
  }
  if (text_.size() < kWriteBytes) return {};
  TRY(output_->write(text_));
  text_.clear();
  return {};
}

Result<> ModelTextWriter::commit() {
  TRY(output_->write(text_));
  text_.clear();
  return output_->commit();
}

Result<> read_model_text(FileStore& store, const std::string& uri, const TakeModel& take) {
  TextReader reader = TRY(TextReader::open(store, {.uri = uri}));
  ModelLines lines;
  while (true) {
    const std::string_view text = TRY(reader.next());
    if (text.empty()) return {};
    lines.clear();
    const char* const end = text.data() + text.size();
    const auto skip_space = [&](const char* at) {
      while (at < end && (is_blank(*at) || is_line_end(*at))) ++at;
      return at;
    };
    for (const char* at = skip_space(text.data()); at < end;) {
      const char* const rest = lines.scan_line(at, end);
      if (rest == nullptr) {
        const uint64_t line = TRY(line_number(store, uri, reader.offset() + static_cast<uint64_t>(at - text.data())));
        return corrupt(
            "{}:{}: is no line of a model, which has a key, a tab and a weight, and may have the {} of an embedding",
            uri, line, lines.dim == 0 ? "numbers" : fmt::format("{} numbers", lines.dim));
      }
      at = skip_space(rest);
    }
    TRY(take(lines.keys, lines.weights, {lines.dim, lines.places, lines.embeddings}));
  }
}

}  // namespace pscloud

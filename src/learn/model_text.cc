#include "learn/model_text.h"

#include <cmath>
#include <vector>

#include "base/check.h"
#include "data/number_text.h"
#include "data/scan.h"
#include "data/text_reader.h"

namespace pscloud {
namespace {

constexpr size_t kWriteBytes = 1 << 20;

}  // namespace

Result<> ModelTextWriter::write(std::span<const Key> keys, std::span<const float> weights) {
  CHECK(keys.size() == weights.size(), "{} keys, {} weights", keys.size(), weights.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (weights[i] == 0) continue;
    append_number(text_, keys[i]);
    text_ += '\t';
    append_number(text_, weights[i]);
    text_ += '\n';
    ++weights_;
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

Result<> read_model_text(FileStore& store, const std::string& uri,
                         const std::function<Result<>(std::span<const Key>, std::span<const float>)>& take) {
  TextReader reader = TRY(TextReader::open(store, {.uri = uri}));
  std::vector<Key> keys;
  std::vector<float> weights;
  while (true) {
    const std::string_view text = TRY(reader.next());
    if (text.empty()) return {};
    keys.clear();
    weights.clear();
    const char* const end = text.data() + text.size();
    const auto is_space = [](char c) { return is_blank(c) || c == '\n' || c == '\r'; };
    const auto skip_space = [&](const char* at) {
      while (at < end && is_space(*at)) ++at;
      return at;
    };
    for (const char* at = skip_space(text.data()); at < end;) {
      Key key = 0;
      float weight = 0;
      const char* rest = scan_u64(at, key);
      const bool goes_on = rest != nullptr && rest < end && is_blank(*rest);
      rest = goes_on ? scan_float(skip_blanks(rest, end), end, weight) : nullptr;
      const bool whole = rest != nullptr && rest <= end && (rest == end || is_space(*rest));
      if (!whole || std::isnan(weight)) {
        const uint64_t line = TRY(line_number(store, uri, reader.offset() + static_cast<uint64_t>(at - text.data())));
        return corrupt("{}:{}: is no line of a model, which has a key, a tab and a weight", uri, line);
      }
      keys.push_back(key);
      weights.push_back(weight);
      at = skip_space(rest);
    }
    TRY(take(keys, weights));
  }
}

}  // namespace pscloud

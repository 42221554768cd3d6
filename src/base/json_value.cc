#include "base/json_value.h"

#include <charconv>
#include <set>

namespace pscloud {

// Reads one document, once from front to back.
class JsonParser {
 public:
  explicit JsonParser(std::string_view text) : text_(text) {}

  Result<JsonValue> document() {
    JsonValue value = TRY(this->value(0));
    skip_space();
    if (at_ != text_.size()) return wrong("there is more after the end of the value");
    return value;
  }

 private:
  static constexpr int kDepthMax = 64;

  Error wrong(std::string_view what) const { return invalid("{}:{}: {}", line_, at_ - line_begin_ + 1, what); }

  void skip_space() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        line_begin_ = at_ + 1;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return;
      }
    }
  }

  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool take_word(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Result<JsonValue> value(int depth) {
    if (depth > kDepthMax) return wrong("this is nested too deep");
    skip_space();
    if (at_ == text_.size()) return wrong("a value is missing");
    JsonValue value;
    value.line_ = line_;
    value.column_ = static_cast<uint32_t>(at_ - line_begin_ + 1);
    if (take('{')) {
      value.kind_ = JsonValue::Kind::kObject;
      TRY(members(value, depth));
    } else if (take('[')) {
      value.kind_ = JsonValue::Kind::kArray;
      TRY(items(value, depth));
    } else if (text_[at_] == '"') {
      value.kind_ = JsonValue::Kind::kString;
      value.text_ = TRY(string());
    } else if (take_word("true")) {
      value.kind_ = JsonValue::Kind::kBool;
      value.truth_ = true;
    } else if (take_word("false")) {
      value.kind_ = JsonValue::Kind::kBool;
    } else if (!take_word("null")) {
      value.kind_ = JsonValue::Kind::kNumber;
      value.text_ = TRY(number());
    }
    return value;
  }

  Result<> members(JsonValue& object, int depth) {
    skip_space();
    if (take('}')) return {};
    std::set<std::string> names;
    while (true) {
      skip_space();
      if (at_ == text_.size() || text_[at_] != '"') return wrong("a name in quotes is expected here");
      const size_t begin = at_;
      std::string name = TRY(string());
      if (!names.insert(name).second) {
        at_ = begin;
        return wrong("this name stands here for the second time");
      }
      skip_space();
      if (!take(':')) return wrong("a ':' is expected here");
      JsonValue member = TRY(value(depth + 1));
      object.members_.emplace_back(std::move(name), std::move(member));
      skip_space();
      if (take('}')) return {};
      if (!take(',')) return wrong("a ',' or '}' is expected here");
    }
  }

  Result<> items(JsonValue& array, int depth) {
    skip_space();
    if (take(']')) return {};
    while (true) {
      array.items_.push_back(TRY(value(depth + 1)));
      skip_space();
      if (take(']')) return {};
      if (!take(',')) return wrong("a ',' or ']' is expected here");
    }
  }

  Result<std::string> string() {
    ++at_;  // the quote
    std::string text;
    while (true) {
      if (at_ == text_.size()) return wrong("the string has no end");
      const char c = text_[at_];
      if (static_cast<unsigned char>(c) < 0x20) return wrong("a control character stands in a string");
      ++at_;
      if (c == '"') return text;
      if (c != '\\') {
        text += c;
        continue;
      }
      TRY(escape(text));
    }
  }

  Result<> escape(std::string& text) {
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (at_ == text_.size()) return wrong("the string has no end");
    if (const size_t which = kLetters.find(text_[at_]); which != std::string_view::npos) {
      text += kMeanings[which];
      ++at_;
      return {};
    }
    if (!take('u')) return wrong("there is no such escape");
    uint32_t code = TRY(hex4());
    if (code >= 0xdc00 && code < 0xe000) return wrong("this is half a character");
    if (code >= 0xd800 && code < 0xdc00) {
      if (!take_word("\\u")) return wrong("the second half of a character is missing");
      const uint32_t low = TRY(hex4());
      if (low < 0xdc00 || low >= 0xe000) return wrong("the second half of a character is missing");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    append_utf8(code, text);
    return {};
  }

  Result<uint32_t> hex4() {
    uint32_t code = 0;
    const std::string_view digits = text_.substr(at_, 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (error != std::errc() || end != digits.data() + 4) return wrong("four hexadecimal digits are expected here");
    at_ += 4;
    return code;
  }

  static void append_utf8(uint32_t code, std::string& text) {
    const auto tail = [&](int shift) { text += static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else if (code < 0x800) {
      text += static_cast<char>(0xc0 | (code >> 6));
      tail(0);
    } else if (code < 0x10000) {
      text += static_cast<char>(0xe0 | (code >> 12));
      tail(6);
      tail(0);
    } else {
      text += static_cast<char>(0xf0 | (code >> 18));
      tail(12);
      tail(6);
      tail(0);
    }
  }

  bool take_digits() {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ > begin;
  }

  Result<std::string> number() {
    const size_t begin = at_;
    take('-');
    const size_t first = at_;
    if (!take_digits()) return wrong("a value is expected here");
    if (text_[first] == '0' && at_ - first > 1) return wrong("a number does not begin with 0");
    if (take('.') && !take_digits()) return wrong("a digit is expected here");
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!take_digits()) return wrong("a digit is expected here");
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  const std::string_view text_;
  size_t at_ = 0;
  size_t line_begin_ = 0;
  uint32_t line_ = 1;
};

Result<JsonValue> JsonValue::parse(std::string_view text) { return JsonParser(text).document(); }

const std::string& JsonValue::text() const {
  static const std::string kNone;
  return kind_ == Kind::kString ? text_ : kNone;
}

bool JsonValue::truth(bool otherwise) const { return kind_ == Kind::kBool ? truth_ : otherwise; }

double JsonValue::number(double otherwise) const {
  double number = otherwise;
  if (kind_ == Kind::kNumber) std::from_chars(text_.data(), text_.data() + text_.size(), number);
  return number;
}

int64_t JsonValue::integer(int64_t otherwise) const {
  int64_t number = 0;
  if (kind_ != Kind::kNumber) return otherwise;
  const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
  return error == std::errc() && end == text_.data() + text_.size() ? number : otherwise;
}

const JsonValue& JsonValue::operator[](std::string_view name) const {
  static const JsonValue kNull;
  for (const Member& member : members_) {
    if (member.first == name) return member.second;
  }
  return kNull;
}

std::string JsonValue::place() const { return fmt::format("{}:{}", line_, column_); }

const char* json_kind_name(JsonValue::Kind kind) {
  constexpr const char* kNames[] = {"null", "true or false", "a number", "a string", "a list", "an object"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace pscloud

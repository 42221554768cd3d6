#include "io/xml.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/text.h"

namespace pscloud {
namespace {

constexpr int kDepthMax = 32;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.' || c == ':' || (c & '\x80') != 0;
}

void append_utf8(uint32_t point, std::string& out) {
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xc0 | (point >> 6));
    out += static_cast<char>(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    out += static_cast<char>(0xe0 | (point >> 12));
    out += static_cast<char>(0x80 | ((point >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (point & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (point >> 18));
    out += static_cast<char>(0x80 | ((point >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((point >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (point & 0x3f));
  }
}

class XmlParser {
 public:
  explicit XmlParser(std::string_view text) : text_(text) {}

  Result<XmlElement> document() {
    (void)take("\xef\xbb\xbf");  // the mark of UTF-8
    if (take("<?xml")) {
      const size_t end = text_.find("?>", at_);
      if (end == std::string_view::npos) return wrong("a declaration without an end");
      at_ = end + 2;
    }
    skip_spaces();
    XmlElement root = TRY(element(0));
    skip_spaces();
    if (at_ != text_.size()) return wrong("something behind the last element");
    return root;
  }

 private:
  Error wrong(std::string_view what) const { return corrupt("no XML as we know it: {} at byte {}", what, at_); }

  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void skip_spaces() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  std::string_view name() {
    const size_t begin = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  // name="value", of which nothing is kept.
  Result<> attribute() {
    if (name().empty()) return wrong("no name of an attribute");
    skip_spaces();
    if (!take("=")) return wrong("an attribute without a value");
    skip_spaces();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '"' && quote != '\'') return wrong("a value without quotes");
    const size_t end = text_.find_first_of(quote == '"' ? "\"<" : "'<", at_ + 1);
    if (end == std::string_view::npos || text_[end] != quote) return wrong("a value without an end");
    at_ = end + 1;
    return {};
  }

  Result<> entity(std::string& out) {
    struct Named {
      std::string_view name;
      char meaning;
    };
    for (const Named one : {Named{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}}) {
      if (take(one.name)) {
        out += one.meaning;
        return {};
      }
    }
    if (!take("&#")) return wrong("an unknown entity");
    const int base = take("x") ? 16 : 10;
    uint32_t point = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), point, base);
    at_ = static_cast<size_t>(end - text_.data());
    const bool surrogate = point >= 0xd800 && point < 0xe000;
    if (error != std::errc() || point == 0 || surrogate || point > 0x10ffff || !take(";")) {
      return wrong("no number of a character");
    }
    append_utf8(point, out);
    return {};
  }

  Result<XmlElement> element(int depth) {
    if (depth == kDepthMax) return wrong("too many elements within each other");
    XmlElement result;
    if (!take("<")) return wrong("no element");
    result.name = name();
    if (result.name.empty()) return wrong("no name of an element");
    while (true) {
      const size_t before = at_;
      skip_spaces();
      if (take("/>")) return result;
      if (take(">")) break;
      if (at_ == before) return wrong("no end of a tag");
      TRY(attribute());
    }
    while (at_ < text_.size()) {
      if (take("</")) {
        if (name() != result.name) return wrong("the end of another element");
        skip_spaces();
        if (!take(">")) return wrong("no end of a tag");
        return result;
      }
      if (text_[at_] == '<') {
        result.children.push_back(TRY(element(depth + 1)));
      } else if (text_[at_] == '&') {
        TRY(entity(result.text));
      } else {
        const size_t size = utf8_character_bytes(text_.substr(at_));
        if (size == 0) return wrong("bytes that are not UTF-8");
        result.text += text_.substr(at_, size);
        at_ += size;
      }
    }
    return wrong("the end");
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

const XmlElement* XmlElement::child(std::string_view child_name) const {
  const auto found = std::ranges::find(children, child_name, &XmlElement::name);
  return found == children.end() ? nullptr : &*found;
}

std::string XmlElement::text_of(std::string_view child_name) const {
  const XmlElement* found = child(child_name);
  return found == nullptr ? "" : found->text;
}

Result<XmlElement> parse_xml(std::string_view text) { return XmlParser(text).document(); }

}  // namespace pscloud
